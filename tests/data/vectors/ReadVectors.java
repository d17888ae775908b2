// java ReadVectors.java FILE prints the message, the version and the number of bytes of each line.
// Java has no reader of JSON. The first three members are in this order in every line.
class ReadVectors {
    public static void main(String[] args) throws java.io.IOException {
        var line = java.util.regex.Pattern.compile(
            "^\\{\"message\":\"(\\w+)\",(?:\"module\":\"[^\"]*\",)?\"version\":(-?\\d+),(?:\"how\":\"[^\"]*\",)?\"hex\":\"(\\w*)\"");
        var packed = new java.util.zip.GZIPInputStream(new java.io.FileInputStream(args[0]));
        for (var text : new String(packed.readAllBytes(), "UTF-8").split("\n")) {
            var found = line.matcher(text);
            if (!found.find()) throw new java.io.IOException("not a vector: " + text);
            System.out.println(found.group(1) + " " + found.group(2) + " " + java.util.HexFormat.of().parseHex(found.group(3)).length);
        }
    }
}
