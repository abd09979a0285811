// Compares the layout of XLA's interface as clients/python/core/xla_abi_private.h has it with that of jaxlib's own
// header.
#include "xla/ffi/api/c_api.h"

#include "clients/python/core/xla_abi_private.h"

#define SAME(ours, member, theirs, its) \
  static_assert(offsetof(ours, member) == offsetof(theirs, its) && sizeof(ours::member) == sizeof(theirs::its))

namespace sinew_python::xla {

static_assert(int(version_major) == XLA_FFI_API_MAJOR);
static_assert(int(type_s32) == XLA_FFI_DataType_S32 && int(type_f32) == XLA_FFI_DataType_F32 &&
              int(type_f64) == XLA_FFI_DataType_F64);
static_assert(int(error_argument) == XLA_FFI_Error_Code_INVALID_ARGUMENT &&
              int(error_memory) == XLA_FFI_Error_Code_RESOURCE_EXHAUSTED &&
              int(error_state) == XLA_FFI_Error_Code_FAILED_PRECONDITION &&
              int(error_unsupported) == XLA_FFI_Error_Code_UNIMPLEMENTED &&
              int(error_other) == XLA_FFI_Error_Code_INTERNAL);
static_assert(int(extension_metadata) == XLA_FFI_Extension_Metadata);
static_assert(int(attribute_string) == XLA_FFI_AttrType_STRING);

SAME(Extension, type, XLA_FFI_Extension_Base, type);
SAME(Extension, next, XLA_FFI_Extension_Base, next);
static_assert(sizeof(Extension) == sizeof(XLA_FFI_Extension_Base));
SAME(Version, major, XLA_FFI_Api_Version, major_version);
SAME(Version, minor, XLA_FFI_Api_Version, minor_version);
static_assert(sizeof(Version) == sizeof(XLA_FFI_Api_Version));
SAME(Metadata, version, XLA_FFI_Metadata, api_version);
SAME(Metadata, traits, XLA_FFI_Metadata, traits);
SAME(MetadataExtension, metadata, XLA_FFI_Metadata_Extension, metadata);
SAME(ErrorCreate, message, XLA_FFI_Error_Create_Args, message);
SAME(ErrorCreate, code, XLA_FFI_Error_Create_Args, errc);
static_assert(sizeof(ErrorCreate) == sizeof(XLA_FFI_Error_Create_Args));
SAME(Api, version, XLA_FFI_Api, api_version);
SAME(Api, create_error, XLA_FFI_Api, XLA_FFI_Error_Create);
SAME(Buffer, type, XLA_FFI_Buffer, dtype);
SAME(Buffer, data, XLA_FFI_Buffer, data);
SAME(Buffer, rank, XLA_FFI_Buffer, rank);
SAME(Buffer, dims, XLA_FFI_Buffer, dims);
SAME(Buffers, size, XLA_FFI_Args, size);
SAME(Buffers, data, XLA_FFI_Args, args);
SAME(Buffers, size, XLA_FFI_Rets, size);
SAME(Buffers, data, XLA_FFI_Rets, rets);
static_assert(sizeof(Buffers) == sizeof(XLA_FFI_Args) && sizeof(Buffers) == sizeof(XLA_FFI_Rets));
SAME(Text, data, XLA_FFI_ByteSpan, ptr);
SAME(Text, size, XLA_FFI_ByteSpan, len);
SAME(Attributes, size, XLA_FFI_Attrs, size);
SAME(Attributes, types, XLA_FFI_Attrs, types);
SAME(Attributes, names, XLA_FFI_Attrs, names);
SAME(Attributes, data, XLA_FFI_Attrs, attrs);
static_assert(sizeof(Attributes) == sizeof(XLA_FFI_Attrs));
SAME(CallFrame, extensions, XLA_FFI_CallFrame, extension_start);
SAME(CallFrame, api, XLA_FFI_CallFrame, api);
SAME(CallFrame, stage, XLA_FFI_CallFrame, stage);
SAME(CallFrame, arguments, XLA_FFI_CallFrame, args);
SAME(CallFrame, results, XLA_FFI_CallFrame, rets);
SAME(CallFrame, attributes, XLA_FFI_CallFrame, attrs);

}  // namespace sinew_python::xla
