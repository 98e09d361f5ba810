// zt.hpp - zt.h for C++17: handles that free themselves, views, and exceptions. Needs libzt alone.
//
//   zt::File file("model.gguf");
//   for (zt::Tensor tensor : file) std::cout << tensor.name() << " " << tensor.type() << "\n";
//   std::vector<float> weight = file.at("weight").values<float>();
//
// A call that fails throws zt::Error. zt.h has the contract of each function: threads, lifetimes, what is lent.
#ifndef ZT_HPP
#define ZT_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zt.h"

namespace zt {

// What a call says of its failure.
class Error : public std::exception {
public:
    Error(zt_status status, zt_error *error)
        : status_(status), code_(zt_status_name(status)), message_(code_) {
        if (error) {
            code_ = zt_error_code(error);
            message_ = zt_error_message(error);
        }
        if (const char *object = zt_error_object(error)) object_ = object;
        zt_error_free(&error);
    }

    const char *what() const noexcept override { return message_.c_str(); }
    zt_status status() const noexcept { return status_; }
    // Stable: compare this, and not the text.
    const std::string &code() const noexcept { return code_; }
    // The tensor at fault; empty if there is not just one.
    const std::string &object() const noexcept { return object_; }

private:
    zt_status status_;
    std::string code_, message_, object_;
};

// Calls `call` with the place for an error, and throws what it says.
template <typename Call>
void check(Call call) {
    zt_error *error = nullptr;
    if (zt_status status = call(&error)) throw Error(status, error);
}

// Values that another owns.
template <typename T>
class Span {
public:
    Span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    T *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    T *begin() const noexcept { return data_; }
    T *end() const noexcept { return data_ + size_; }
    T &operator[](std::size_t at) const noexcept { return data_[at]; }

private:
    T *data_;
    std::size_t size_;
};

// The zt_dtype of a type of C++.
template <typename T> struct dtype_of;
template <> struct dtype_of<double> { static constexpr zt_dtype value = ZT_F64; };
template <> struct dtype_of<float> { static constexpr zt_dtype value = ZT_F32; };
template <> struct dtype_of<std::int64_t> { static constexpr zt_dtype value = ZT_I64; };
template <> struct dtype_of<std::int32_t> { static constexpr zt_dtype value = ZT_I32; };
template <> struct dtype_of<std::int16_t> { static constexpr zt_dtype value = ZT_I16; };
template <> struct dtype_of<std::int8_t> { static constexpr zt_dtype value = ZT_I8; };
template <> struct dtype_of<std::uint64_t> { static constexpr zt_dtype value = ZT_U64; };
template <> struct dtype_of<std::uint32_t> { static constexpr zt_dtype value = ZT_U32; };
template <> struct dtype_of<std::uint16_t> { static constexpr zt_dtype value = ZT_U16; };
template <> struct dtype_of<std::uint8_t> { static constexpr zt_dtype value = ZT_U8; };

// A tensor of an open file. Copying it is free. It must not outlive its file.
class Tensor {
public:
    explicit Tensor(const zt_tensor *handle) noexcept : handle_(handle) {}
    const zt_tensor *get() const noexcept { return handle_; }

    std::string_view name() const { return zt_tensor_name(handle_); }
    std::string_view format() const { return zt_tensor_format(handle_); }
    zt_dtype dtype() const noexcept { return zt_tensor_dtype(handle_); }
    // Empty if the file does not record it.
    std::string_view type() const {
        const char *type = zt_tensor_type(handle_);
        return type ? type : "";
    }
    Span<const std::uint64_t> shape() const noexcept {
        const std::uint64_t *shape = nullptr;
        std::size_t rank = zt_tensor_shape(handle_, &shape);
        return {shape, rank};
    }
    // JSON.
    std::string_view attributes() const {
        const char *json = nullptr;
        check([&](zt_error **error) { return zt_tensor_attributes(handle_, &json, error); });
        return json;
    }
    // Bytes of the values, in `dtype` or as they are stored.
    std::uint64_t byte_len(zt_dtype dtype = ZT_NONE) const {
        std::uint64_t byte_len = 0;
        check([&](zt_error **error) { return zt_tensor_byte_len(handle_, dtype, &byte_len, error); });
        return byte_len;
    }

    // The values in memory of the file. Nothing if they are compressed, of another type, or the file lends none.
    template <typename T>
    std::optional<Span<const T>> borrow() const {
        const void *data = nullptr;
        std::size_t byte_len = 0;
        if (dtype() != dtype_of<T>::value) return std::nullopt;
        zt_error *error = nullptr;
        zt_status status = zt_tensor_borrow(handle_, &data, &byte_len, &error);
        if (status == ZT_UNSUPPORTED) {
            zt_error_free(&error);
            return std::nullopt;
        }
        if (status) throw Error(status, error);
        return Span<const T>(static_cast<const T *>(data), byte_len / sizeof(T));
    }

    // A copy of all values as T.
    template <typename T>
    std::vector<T> values() const {
        std::vector<T> values(static_cast<std::size_t>(byte_len(dtype_of<T>::value) / sizeof(T)));
        check([&](zt_error **error) {
            return zt_tensor_read(handle_, dtype_of<T>::value, values.data(), values.size() * sizeof(T), error);
        });
        return values;
    }

    // A copy of some rows as T.
    template <typename T>
    std::vector<T> rows(std::uint64_t first, std::uint64_t count) const {
        std::uint64_t width = 1;
        bool is_first = true;
        for (std::uint64_t dimension : shape()) {
            if (!is_first) width *= dimension;
            is_first = false;
        }
        std::vector<T> values(static_cast<std::size_t>(count * width));
        check([&](zt_error **error) {
            return zt_tensor_rows(handle_, first, count, dtype_of<T>::value, values.data(), values.size() * sizeof(T), error);
        });
        return values;
    }

private:
    const zt_tensor *handle_;
};

// An open file of any kind.
class File {
public:
    explicit File(const std::string &location, const zt_open_options *options = nullptr) {
        check([&](zt_error **error) { return zt_file_open(location.c_str(), options, &handle_, error); });
    }
    // Bytes that stay until the file is gone.
    File(const void *data, std::size_t byte_len, const zt_open_options *options = nullptr) {
        check([&](zt_error **error) { return zt_file_open_memory(data, byte_len, false, options, &handle_, error); });
    }
    ~File() { zt_file_close(&handle_); }
    File(File &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    File &operator=(File &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    File(const File &) = delete;
    File &operator=(const File &) = delete;

    const zt_file *get() const noexcept { return handle_; }
    std::string_view kind() const { return zt_file_kind(handle_); }
    std::size_t size() const noexcept { return zt_file_tensor_count(handle_); }
    Tensor operator[](std::size_t index) const noexcept { return Tensor(zt_file_tensor_at(handle_, index)); }
    // JSON.
    std::string_view attributes() const {
        const char *json = nullptr;
        check([&](zt_error **error) { return zt_file_attributes(handle_, &json, error); });
        return json;
    }
    std::optional<Tensor> find(const std::string &name) const {
        const zt_tensor *found = zt_file_tensor(handle_, name.c_str());
        return found ? std::optional<Tensor>(Tensor(found)) : std::nullopt;
    }
    // Throws an Error of the status ZT_NOT_FOUND.
    Tensor at(const std::string &name) const {
        std::optional<Tensor> found = find(name);
        if (!found) throw Error(ZT_NOT_FOUND, nullptr);
        return *found;
    }
    std::string hash() const {
        char text[72];
        check([&](zt_error **error) { return zt_file_hash(handle_, text, sizeof text, error); });
        return text;
    }

    class Iterator {
    public:
        Iterator(const File *file, std::size_t at) noexcept : file_(file), at_(at) {}
        Tensor operator*() const noexcept { return (*file_)[at_]; }
        Iterator &operator++() noexcept {
            ++at_;
            return *this;
        }
        bool operator!=(const Iterator &other) const noexcept { return at_ != other.at_; }

    private:
        const File *file_;
        std::size_t at_;
    };
    Iterator begin() const noexcept { return {this, 0}; }
    Iterator end() const noexcept { return {this, size()}; }

private:
    zt_file *handle_ = nullptr;
};

// A .zt file that appears when it is finished.
class Writer {
public:
    explicit Writer(const std::string &path, const zt_write_options *options = nullptr) {
        check([&](zt_error **error) { return zt_writer_create(path.c_str(), options, &handle_, error); });
    }
    ~Writer() { zt_writer_free(&handle_); }
    Writer(Writer &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Writer(const Writer &) = delete;
    Writer &operator=(const Writer &) = delete;

    zt_writer *get() const noexcept { return handle_; }
    void set_attributes(const std::string &json) {
        check([&](zt_error **error) { return zt_writer_set_attributes(handle_, json.c_str(), error); });
    }
    template <typename T>
    void add(const std::string &name, const std::vector<std::uint64_t> &shape, Span<const T> values) {
        zt_object object = {};
        object.struct_size = sizeof object;
        object.name = name.c_str();
        object.dtype = dtype_of<T>::value;
        object.rank = static_cast<std::uint32_t>(shape.size());
        object.shape = shape.data();
        check([&](zt_error **error) {
            return zt_writer_add(handle_, &object, values.data(), values.size() * sizeof(T), error);
        });
    }
    void finish() {
        check([&](zt_error **error) { return zt_writer_finish(handle_, error); });
    }

private:
    zt_writer *handle_ = nullptr;
};

// Writes a file of any kind as another.
inline void convert(const std::string &from, const std::string &to, const zt_convert_options *options = nullptr) {
    check([&](zt_error **error) { return zt_convert(from.c_str(), to.c_str(), options, nullptr, error); });
}

} // namespace zt

#endif
