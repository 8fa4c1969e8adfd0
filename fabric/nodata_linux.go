package fabric

import "syscall"

const errnoNoData = Errno(syscall.ENODATA)
