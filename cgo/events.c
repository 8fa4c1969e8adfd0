//go:build linux

#include "events.h"
#include "eventbound.h"

#include <string.h>

// What a provider may write for one event. Entries about connections carry
// data of the peer's behind the struct.
union entry {
	struct fi_eq_entry plain;
	struct fi_eq_cm_entry cm;
	char room[sizeof(struct fi_eq_cm_entry) + WEFT_EVENT_DATA];
};

int weft_eq_open(struct fid_fabric *fabric, uint64_t size, int wait,
		 uint64_t flags, struct fid_eq **eq)
{
	struct fi_eq_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.size = size;
	attr.flags = flags;
	attr.wait_obj = (enum fi_wait_obj)wait;
	return fi_eq_open(fabric, &attr, eq, NULL);
}

static void clear(struct weft_event *out)
{
	out->event = 0;
	out->err = 0;
	out->prov_errno = 0;
	out->length = 0;
	out->object = 0;
	out->context = 0;
	out->data = 0;
	out->info = 0;
	out->text[0] = 0;
}

static int read_error(struct fid_eq *eq, struct weft_event *out)
{
	struct fi_eq_err_entry e;
	const char *text;
	ssize_t ret;

	memset(&e, 0, sizeof e);
	// From API 1.5 on a provider copies the peer's data into this; before, it
	// lends its own.
	e.err_data = out->bytes;
	e.err_data_size = sizeof out->bytes;
	ret = fi_eq_readerr(eq, &e, 0);
	if (ret == 0 || ret == -FI_EAGAIN)
		return 0;
	if (ret < 0)
		return (int)ret;
	weft_eq_error_read(eq);
	out->object = (uintptr_t)e.fid;
	out->context = (uintptr_t)e.context;
	out->data = e.data;
	out->err = e.err < 0 ? -e.err : e.err;
	if (out->err == 0)
		out->err = FI_EOTHER;
	out->prov_errno = e.prov_errno;
	if (e.err_data && e.err_data_size) {
		size_t n = e.err_data_size;

		if (n > sizeof out->bytes)
			n = sizeof out->bytes;
		if (e.err_data != out->bytes)
			memcpy(out->bytes, e.err_data, n);
		// A provider that did not touch the size has given no data.
		if (e.err_data != out->bytes || n < sizeof out->bytes)
			out->length = (uint32_t)n;
	}
	if (e.prov_errno) {
		text = fi_eq_strerror(eq, e.prov_errno, NULL, out->text,
				      sizeof out->text);
		if (text && text != out->text)
			strncpy(out->text, text, sizeof out->text - 1);
	}
	out->text[sizeof out->text - 1] = 0;
	return 1;
}

int weft_eq_read(struct fid_eq *eq, struct weft_event *out)
{
	union entry buf;
	uint32_t event = UINT32_MAX;
	size_t extra;
	ssize_t ret;

	clear(out);
	ret = fi_eq_read(eq, &event, &buf, sizeof buf, 0);
	if (ret == -FI_EAVAIL)
		return read_error(eq, out);
	if (ret == 0 || ret == -FI_EAGAIN || ret == -FI_EINTR)
		return 0;
	if (ret < 0)
		return (int)ret;
	out->event = event;
	switch (event) {
	case FI_CONNREQ:
	case FI_CONNECTED:
	case FI_SHUTDOWN:
		if ((size_t)ret < sizeof buf.cm)
			return -FI_EOTHER;
		out->object = (uintptr_t)buf.cm.fid;
		if (event == FI_CONNREQ)
			out->info = (uintptr_t)buf.cm.info;
		extra = (size_t)ret - sizeof buf.cm;
		if (extra > sizeof out->bytes)
			extra = sizeof out->bytes;
		memcpy(out->bytes, buf.cm.data, extra);
		out->length = (uint32_t)extra;
		return 1;
	}
	if ((size_t)ret >= sizeof buf.plain) {
		out->object = (uintptr_t)buf.plain.fid;
		out->context = (uintptr_t)buf.plain.context;
		out->data = buf.plain.data;
	}
	return 1;
}

// The event is only looked at, so that whoever waits need not keep others from
// the queue meanwhile.
int weft_eq_wait(struct fid_eq *eq, int timeout_ms)
{
	union entry buf;
	uint32_t event;
	ssize_t ret;

	ret = fi_eq_sread(eq, &event, &buf, sizeof buf, timeout_ms, FI_PEEK);
	if (ret > 0 || ret == -FI_EAVAIL || ret == -FI_ETOOSMALL)
		return 1;
	if (ret == 0 || ret == -FI_EAGAIN || ret == -FI_EINTR ||
	    ret == -FI_ETIMEDOUT)
		return 0;
	return (int)ret;
}

int weft_eq_notify(struct fid_eq *eq, uint64_t data)
{
	struct fi_eq_entry entry;
	ssize_t ret;

	memset(&entry, 0, sizeof entry);
	entry.fid = &eq->fid;
	entry.data = data;
	ret = fi_eq_write(eq, FI_NOTIFY, &entry, sizeof entry, 0);
	return ret < 0 ? (int)ret : 0;
}
