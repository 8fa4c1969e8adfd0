//go:build linux

#include "forgotten.h"
#include "counted.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

// ofi_rxm registers the memory of a long message on both sides, and gives that back when the
// message is there, and at no other time. If either side ends before, the domain below it cannot
// be closed any more. So what is registered there is kept, and what is left when nobody has
// anything of the domain any more is closed.

struct registration {
	struct fi_ops calls; // in the place of its own
	struct fi_ops *own;
	struct fid *fid;
	struct fid_domain *domain;
	struct registration *next, **before;
};

static struct registration *all;

// calls are those of a provider's domains, with which they register.
struct calls {
	struct fi_ops_mr keeping; // in the place of
	const struct fi_ops_mr *own;
	struct calls *next;
};

static struct calls *providers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void link_in(struct registration *r)
{
	r->next = all;
	r->before = &all;
	if (all)
		all->before = &r->next;
	all = r;
}

static void take_out(struct registration *r)
{
	*r->before = r->next;
	if (r->next)
		r->next->before = r->before;
}

static int close_it(struct fid *fid)
{
	struct registration *r = (struct registration *)((char *)fid->ops - offsetof(struct registration, calls));
	int ret;

	pthread_mutex_lock(&lock);
	take_out(r);
	pthread_mutex_unlock(&lock);
	fid->ops = r->own;
	ret = fi_close(fid);
	if (ret) {
		fid->ops = &r->calls;
		pthread_mutex_lock(&lock);
		link_in(r);
		pthread_mutex_unlock(&lock);
		return ret;
	}
	weft_give(WEFT_FOR_CONNECTIONS, r);
	return 0;
}

static int keep(int ret, struct fid *domain, struct fid_mr **mr)
{
	struct registration *r;

	if (ret)
		return ret;
	r = weft_take(WEFT_FOR_CONNECTIONS, sizeof *r);
	if (!r) {
		fi_close(&(*mr)->fid);
		return -FI_ENOMEM;
	}
	r->fid = &(*mr)->fid;
	r->own = r->fid->ops;
	r->domain = (struct fid_domain *)domain;
	r->calls = *r->own;
	r->calls.size = sizeof r->calls;
	r->calls.close = close_it;
	r->fid->ops = &r->calls;
	pthread_mutex_lock(&lock);
	link_in(r);
	pthread_mutex_unlock(&lock);
	return 0;
}

// own_of returns the provider's calls of a domain.
static const struct fi_ops_mr *own_of(struct fid *domain)
{
	return ((const struct calls *)((struct fid_domain *)domain)->mr)->own;
}

static int reg(struct fid *domain, const void *buf, size_t len, uint64_t access, uint64_t offset,
	       uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
{
	int ret = own_of(domain)->reg(domain, buf, len, access, offset, key, flags, mr, context);

	return keep(ret, domain, mr);
}

static int regv(struct fid *domain, const struct iovec *iov, size_t count, uint64_t access,
		uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
{
	int ret = own_of(domain)->regv(domain, iov, count, access, offset, key, flags, mr, context);

	return keep(ret, domain, mr);
}

static int regattr(struct fid *domain, const struct fi_mr_attr *attr, uint64_t flags,
		   struct fid_mr **mr)
{
	return keep(own_of(domain)->regattr(domain, attr, flags, mr), domain, mr);
}

int weft_keep_registrations(struct fid_domain *below)
{
	struct calls *c;

	// Those that ofi_rxm has for collectives register nothing.
	if (!below->mr)
		return 0;
	pthread_mutex_lock(&lock);
	for (c = providers; c && c->own != below->mr;)
		c = c->next;
	if (!c) {
		c = malloc(sizeof *c);
		if (c) {
			c->own = below->mr;
			c->keeping = *c->own;
			c->keeping.size = sizeof c->keeping;
			c->keeping.reg = reg;
			c->keeping.regv = regv;
			c->keeping.regattr = regattr;
			c->next = providers;
			providers = c;
		}
	}
	if (c)
		below->mr = &c->keeping;
	pthread_mutex_unlock(&lock);
	return c ? 0 : -FI_ENOMEM;
}

// one_of returns what is registered in the domain, or NULL.
static struct fid *one_of(const struct fid_domain *domain)
{
	struct registration *r;

	pthread_mutex_lock(&lock);
	for (r = all; r && r->domain != domain;)
		r = r->next;
	pthread_mutex_unlock(&lock);
	return r ? r->fid : NULL;
}

int weft_close_forgotten(struct fid_domain *below)
{
	struct fid *fid;
	int ret, count = 0;

	while ((fid = one_of(below))) {
		ret = fi_close(fid);
		if (ret)
			return ret;
		count++;
	}
	return count;
}
