// As list.c, in C++17.
#include <iomanip>
#include <iostream>

#include <zt.hpp>

int main(int argc, char **argv) try {
    if (argc != 4) {
        std::cerr << "usage: " << argv[0] << " MODEL WEIGHTS FOLDER\n";
        return 1;
    }
    const std::string folder = argv[3];
    zt::File model(argv[1]);
    std::cout << model.kind() << ": " << model.size() << " tensors\n";
    for (zt::Tensor tensor : model) {
        std::cout << tensor.name() << " " << tensor.type() << " [";
        const char *separator = "";
        for (std::uint64_t dimension : tensor.shape()) {
            std::cout << separator << dimension;
            separator = ", ";
        }
        std::cout << "]\n";
    }

    zt_write_options write = {};
    write.struct_size = sizeof write;
    write.compression = ZT_ZSTD;
    zt_convert_options options = {};
    options.struct_size = sizeof options;
    options.write = &write;
    options.overwrite = 1;
    zt::convert(argv[2], folder + "/weights.zt", &options);

    zt::File weights(folder + "/weights.zt");
    for (zt::Tensor tensor : weights) {
        if (tensor.shape().size() != 2 || tensor.shape()[0] < 10) continue;
        std::vector<float> rows = tensor.rows<float>(0, 10);
        std::cout << tensor.name() << ": 10 rows of " << tensor.shape()[1] << ", the first begins with "
                  << std::fixed << std::setprecision(4) << rows[0] << "\n";
        zt::Writer writer(folder + "/rows.zt");
        writer.add<float>(std::string(tensor.name()), {10, tensor.shape()[1]}, {rows.data(), rows.size()});
        writer.finish();
        options.write = nullptr;
        zt::convert(folder + "/rows.zt", folder + "/rows.safetensors", &options);
        return 0;
    }
    std::cerr << "no matrix of 10 rows\n";
    return 1;
} catch (const zt::Error &error) {
    std::cerr << error.what() << " [" << error.code() << "]\n";
    return 1;
}
