#!/bin/bash
# Stands in for the EFA software of AWS, which only AWS gives out: for the test of
# docker/aws/Dockerfile. It takes the same arguments, and puts Debian's libfabric where
# that of AWS would be, and nowhere else. rdma-core goes into /usr, as that of AWS does.
set -euo pipefail

die() {
	printf 'efa_installer.sh: %s\n' "$*" >&2
	exit 1
}

cd "$(dirname "$0")"
[[ $PWD == "$OLDPWD" ]] || die "the real one wants to be started in its folder"
names=yes,no-verify,skip-limit-conf,skip-kmod,minimal,enable-gdr,debug-packages,uninstall
given=$(getopt -o ynlkmgdu --long "$names" -- "$@") || die "the real one has no such argument"
[[ $given == *--yes* ]] || die "without --yes the real one asks, and here is nobody"
[[ $given == *--skip-kmod* ]] || die "without --skip-kmod the real one looks for kernels, and here is none"
[[ $given != *--minimal* ]] || die "with --minimal the real one installs no libfabric"

root=/opt/amazon/efa
new=$(mktemp -d)
mapfile -t needs < <(apt-cache depends --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances libfabric1 |
	sed -n 's/^ *Depends: //p')
apt-get install -y --no-install-recommends "${needs[@]}"
(cd "$new" && apt-get -o APT::Sandbox::User=root download libfabric1 libfabric-bin libfabric-dev)
for package in "$new"/*.deb; do
	dpkg-deb --extract "$package" "$new/root"
done
mkdir -p "$root"
cp -a "$new"/root/usr/{bin,include} "$root"
cp -a "$new"/root/usr/lib/*-linux-gnu "$root/lib"
sed -i -e "s,^prefix=.*,prefix=$root," -e "s,^libdir=.*,libdir=$root/lib," -e "s,^includedir=.*,includedir=$root/include," \
	"$root/lib/pkgconfig/libfabric.pc"
rm -r "$new"
