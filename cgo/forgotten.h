// Registrations that ofi_rxm has made for messages and forgotten.
#ifndef WEFT_FORGOTTEN_H
#define WEFT_FORGOTTEN_H

#include "shim.h"

// weft_keep_registrations has a domain below ofi_rxm, whose calls are replaced, keep those that
// are made in it. It is called once, before anything is opened there.
int weft_keep_registrations(struct fid_domain *below);

// weft_close_forgotten closes what is still registered in a domain below ofi_rxm, of which
// everything else is closed. It returns how many there were, or what fi_close says.
int weft_close_forgotten(struct fid_domain *below);

#endif
