// As list.c, in C#, with .NET or Mono.
//
//     mcs list.cs && LD_LIBRARY_PATH=LIB mono list.exe MODEL WEIGHTS FOLDER
using System;
using System.Globalization;
using System.Runtime.InteropServices;
using System.Text;

static class Zt
{
    const string Lib = "zt";
    public const uint F32 = 2, Raw = 0, Zstd = 1;

    [StructLayout(LayoutKind.Sequential)]
    public struct WriteOptions
    {
        public UIntPtr StructSize;
        public uint Compression;
        public int Level;
        public uint Digest, Threads;
        public int CreateNew, Reserved;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct ConvertOptions
    {
        public UIntPtr StructSize;
        public IntPtr Kind, Dtype, Write;
        public int Dense, Lossy, Overwrite, Reserved;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct Object
    {
        public UIntPtr StructSize;
        public IntPtr Name;
        public uint Dtype, Rank;
        public IntPtr Shape, LogicalType, Attributes;
    }

    [DllImport(Lib)] public static extern IntPtr zt_error_message(IntPtr error);
    [DllImport(Lib)] public static extern IntPtr zt_error_code(IntPtr error);
    [DllImport(Lib)] public static extern void zt_error_free(ref IntPtr error);
    [DllImport(Lib)] public static extern uint zt_file_open(byte[] location, IntPtr options, out IntPtr file, ref IntPtr error);
    [DllImport(Lib)] public static extern void zt_file_close(ref IntPtr file);
    [DllImport(Lib)] public static extern IntPtr zt_file_kind(IntPtr file);
    [DllImport(Lib)] public static extern UIntPtr zt_file_tensor_count(IntPtr file);
    [DllImport(Lib)] public static extern IntPtr zt_file_tensor_at(IntPtr file, UIntPtr index);
    [DllImport(Lib)] public static extern IntPtr zt_tensor_name(IntPtr tensor);
    [DllImport(Lib)] public static extern IntPtr zt_tensor_type(IntPtr tensor);
    [DllImport(Lib)] public static extern UIntPtr zt_tensor_shape(IntPtr tensor, out IntPtr shape);
    [DllImport(Lib)] public static extern uint zt_tensor_rows(IntPtr tensor, ulong first, ulong count, uint dtype, float[] data, UIntPtr byteLen, ref IntPtr error);
    [DllImport(Lib)] public static extern uint zt_writer_create(byte[] path, IntPtr options, out IntPtr writer, ref IntPtr error);
    [DllImport(Lib)] public static extern uint zt_writer_add(IntPtr writer, ref Object tensor, float[] data, UIntPtr byteLen, ref IntPtr error);
    [DllImport(Lib)] public static extern uint zt_writer_finish(IntPtr writer, ref IntPtr error);
    [DllImport(Lib)] public static extern void zt_writer_free(ref IntPtr writer);
    [DllImport(Lib)] public static extern uint zt_convert(byte[] from, byte[] to, ref ConvertOptions options, IntPtr warnings, ref IntPtr error);
}

static class List
{
    /// The text at an address; texts of the library are UTF-8 and end with a zero.
    static string Text(IntPtr text)
    {
        if (text == IntPtr.Zero) return "?";
        int length = 0;
        while (Marshal.ReadByte(text, length) != 0) length++;
        var bytes = new byte[length];
        Marshal.Copy(text, bytes, 0, length);
        return Encoding.UTF8.GetString(bytes);
    }

    static byte[] Utf8(string text) { return Encoding.UTF8.GetBytes(text + "\0"); }

    static UIntPtr SizeOf<T>() { return (UIntPtr)(uint)Marshal.SizeOf(typeof(T)); }

    /// Ends the program with the error of a call.
    static void Check(uint status, IntPtr error)
    {
        if (status == 0) return;
        Console.Error.WriteLine("{0} [{1}]", Text(Zt.zt_error_message(error)), Text(Zt.zt_error_code(error)));
        Zt.zt_error_free(ref error);
        Environment.Exit(1);
    }

    static IntPtr Open(string path)
    {
        IntPtr file, error = IntPtr.Zero;
        Check(Zt.zt_file_open(Utf8(path), IntPtr.Zero, out file, ref error), error);
        return file;
    }

    static long[] Shape(IntPtr tensor)
    {
        IntPtr dimensions;
        var shape = new long[(int)Zt.zt_tensor_shape(tensor, out dimensions)];
        if (shape.Length > 0) Marshal.Copy(dimensions, shape, 0, shape.Length);
        return shape;
    }

    static void Convert(string from, string to, uint compression)
    {
        var write = new Zt.WriteOptions { StructSize = SizeOf<Zt.WriteOptions>(), Compression = compression };
        var pinned = GCHandle.Alloc(write, GCHandleType.Pinned);
        var options = new Zt.ConvertOptions { StructSize = SizeOf<Zt.ConvertOptions>(), Write = pinned.AddrOfPinnedObject(), Overwrite = 1 };
        IntPtr error = IntPtr.Zero;
        Check(Zt.zt_convert(Utf8(from), Utf8(to), ref options, IntPtr.Zero, ref error), error);
        pinned.Free();
    }

    static void Write(string path, IntPtr name, long width, float[] rows)
    {
        IntPtr writer, error = IntPtr.Zero;
        var shape = GCHandle.Alloc(new long[] { 10, width }, GCHandleType.Pinned);
        var tensor = new Zt.Object { StructSize = SizeOf<Zt.Object>(), Name = name, Dtype = Zt.F32, Rank = 2, Shape = shape.AddrOfPinnedObject() };
        Check(Zt.zt_writer_create(Utf8(path), IntPtr.Zero, out writer, ref error), error);
        Check(Zt.zt_writer_add(writer, ref tensor, rows, (UIntPtr)(ulong)(4L * rows.Length), ref error), error);
        Check(Zt.zt_writer_finish(writer, ref error), error);
        Zt.zt_writer_free(ref writer);
        shape.Free();
    }

    static int Main(string[] arguments)
    {
        if (arguments.Length != 3)
        {
            Console.Error.WriteLine("usage: list MODEL WEIGHTS FOLDER");
            return 1;
        }
        CultureInfo.DefaultThreadCurrentCulture = CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
        var folder = arguments[2];
        var model = Open(arguments[0]);
        var count = (ulong)Zt.zt_file_tensor_count(model);
        Console.WriteLine("{0}: {1} tensors", Text(Zt.zt_file_kind(model)), count);
        for (ulong i = 0; i < count; i++)
        {
            var tensor = Zt.zt_file_tensor_at(model, (UIntPtr)i);
            Console.WriteLine("{0} {1} [{2}]", Text(Zt.zt_tensor_name(tensor)), Text(Zt.zt_tensor_type(tensor)), string.Join(", ", Shape(tensor)));
        }
        Zt.zt_file_close(ref model);

        Convert(arguments[1], folder + "/weights.zt", Zt.Zstd);
        var weights = Open(folder + "/weights.zt");
        count = (ulong)Zt.zt_file_tensor_count(weights);
        for (ulong i = 0; i < count; i++)
        {
            var tensor = Zt.zt_file_tensor_at(weights, (UIntPtr)i);
            var shape = Shape(tensor);
            if (shape.Length != 2 || shape[0] < 10) continue;
            var rows = new float[10 * shape[1]];
            IntPtr error = IntPtr.Zero;
            Check(Zt.zt_tensor_rows(tensor, 0, 10, Zt.F32, rows, (UIntPtr)(ulong)(4L * rows.Length), ref error), error);
            Console.WriteLine("{0}: 10 rows of {1}, the first begins with {2:F4}", Text(Zt.zt_tensor_name(tensor)), shape[1], rows[0]);
            Write(folder + "/rows.zt", Zt.zt_tensor_name(tensor), shape[1], rows);
            Zt.zt_file_close(ref weights);
            Convert(folder + "/rows.zt", folder + "/rows.safetensors", Zt.Raw);
            return 0;
        }
        Zt.zt_file_close(ref weights);
        Console.Error.WriteLine("no matrix of 10 rows");
        return 1;
    }
}
