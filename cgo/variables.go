//go:build linux

package cgo

/*
#include "shim.h"

// Asking for the parameters loads the providers, which define them.
static int weft_getparams(struct fi_param **params, int *count)
{
	int ret;

	weft_save_handlers();
	ret = fi_getparams(params, count);
	weft_restore_handlers();
	return ret;
}
*/
import "C"

import "unsafe"

// Types of parameters.
const (
	ParamString uint32 = C.FI_PARAM_STRING
	ParamInt    uint32 = C.FI_PARAM_INT
	ParamBool   uint32 = C.FI_PARAM_BOOL
	ParamSize   uint32 = C.FI_PARAM_SIZE_T
)

// Param is an environment variable of libfabric or of a provider.
type Param struct {
	Name, Help, Value string
	Type              uint32
	Set               bool
}

// Params lists the environment variables that libfabric and its providers
// have.
//
// Implements: int fi_getparams(struct fi_param **params, int *count)
// Implements: void fi_freeparams(struct fi_param *params)
func Params() ([]Param, Code) {
	var list *C.struct_fi_param
	var count C.int
	if code := codeOf(C.weft_getparams(&list, &count)); code != 0 {
		return nil, code
	}
	if list == nil {
		return nil, 0
	}
	defer C.fi_freeparams(list)
	params := make([]Param, 0, int(count))
	for _, p := range unsafe.Slice(list, int(count)) {
		params = append(params, Param{
			Name: C.GoString(p.name), Help: C.GoString(p.help_string),
			Value: C.GoString(p.value), Type: uint32(p._type), Set: p.value != nil,
		})
	}
	return params, 0
}
