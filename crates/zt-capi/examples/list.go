// As list.c, in Go.
//
//	CGO_CFLAGS=$(pkg-config --cflags zt) CGO_LDFLAGS=$(pkg-config --libs zt) go build list.go
package main

/*
#include <stdlib.h>
#include <zt.h>
*/
import "C"

import (
	"fmt"
	"os"
	"unsafe"
)

// check ends the program with the error of a call.
func check(status C.zt_status, err *C.zt_error) {
	if status != C.ZT_OK {
		fmt.Fprintf(os.Stderr, "%s [%s]\n", C.GoString(C.zt_error_message(err)), C.GoString(C.zt_error_code(err)))
		os.Exit(1)
	}
}

func open(path string) *C.zt_file {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var file *C.zt_file
	var err *C.zt_error
	check(C.zt_file_open(name, nil, &file, &err), err)
	return file
}

func shape(tensor *C.zt_tensor) []uint64 {
	var dimensions *C.uint64_t
	rank := C.zt_tensor_shape(tensor, &dimensions)
	return unsafe.Slice((*uint64)(unsafe.Pointer(dimensions)), int(rank))
}

func convert(from, to string, compression C.zt_compression) {
	names := [2]*C.char{C.CString(from), C.CString(to)}
	defer C.free(unsafe.Pointer(names[0]))
	defer C.free(unsafe.Pointer(names[1]))
	// Memory of C: a struct that C reads must not point to memory of Go.
	write := (*C.zt_write_options)(C.calloc(1, C.sizeof_zt_write_options))
	defer C.free(unsafe.Pointer(write))
	write.struct_size = C.sizeof_zt_write_options
	write.compression = compression
	var options C.zt_convert_options
	options.struct_size = C.size_t(unsafe.Sizeof(options))
	options.overwrite = 1
	options.write = write
	var err *C.zt_error
	check(C.zt_convert(names[0], names[1], &options, nil, &err), err)
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintf(os.Stderr, "usage: %s MODEL WEIGHTS FOLDER\n", os.Args[0])
		os.Exit(1)
	}
	folder := os.Args[3]
	model := open(os.Args[1])
	count := C.zt_file_tensor_count(model)
	fmt.Printf("%s: %d tensors\n", C.GoString(C.zt_file_kind(model)), uint64(count))
	for i := C.size_t(0); i < count; i++ {
		tensor := C.zt_file_tensor_at(model, i)
		fmt.Printf("%s %s [", C.GoString(C.zt_tensor_name(tensor)), C.GoString(C.zt_tensor_type(tensor)))
		for at, dimension := range shape(tensor) {
			if at > 0 {
				fmt.Print(", ")
			}
			fmt.Print(dimension)
		}
		fmt.Println("]")
	}
	C.zt_file_close(&model)

	convert(os.Args[2], folder+"/weights.zt", C.ZT_ZSTD)
	weights := open(folder + "/weights.zt")
	defer C.zt_file_close(&weights)
	for i := C.size_t(0); i < C.zt_file_tensor_count(weights); i++ {
		tensor := C.zt_file_tensor_at(weights, i)
		dimensions := shape(tensor)
		if len(dimensions) != 2 || dimensions[0] < 10 {
			continue
		}
		rows := make([]float32, 10*dimensions[1])
		data, size := unsafe.Pointer(&rows[0]), C.size_t(4*len(rows))
		var err *C.zt_error
		check(C.zt_tensor_rows(tensor, 0, 10, C.ZT_F32, data, size, &err), err)
		fmt.Printf("%s: 10 rows of %d, the first begins with %.4f\n", C.GoString(C.zt_tensor_name(tensor)), dimensions[1], rows[0])
		write(folder+"/rows.zt", C.zt_tensor_name(tensor), dimensions[1], data, size)
		convert(folder+"/rows.zt", folder+"/rows.safetensors", C.ZT_RAW)
		return
	}
	fmt.Fprintln(os.Stderr, "no matrix of 10 rows")
	os.Exit(1)
}

func write(path string, name *C.char, width uint64, data unsafe.Pointer, size C.size_t) {
	target := C.CString(path)
	defer C.free(unsafe.Pointer(target))
	var writer *C.zt_writer
	var err *C.zt_error
	check(C.zt_writer_create(target, nil, &writer, &err), err)
	dimensions := (*[2]C.uint64_t)(C.malloc(16))
	defer C.free(unsafe.Pointer(dimensions))
	dimensions[0], dimensions[1] = 10, C.uint64_t(width)
	var object C.zt_object
	object.struct_size = C.size_t(unsafe.Sizeof(object))
	object.name, object.dtype, object.rank, object.shape = name, C.ZT_F32, 2, &dimensions[0]
	check(C.zt_writer_add(writer, &object, data, size, &err), err)
	check(C.zt_writer_finish(writer, &err), err)
	C.zt_writer_free(&writer)
}
