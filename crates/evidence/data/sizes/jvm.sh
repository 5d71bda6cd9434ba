#!/bin/sh
# What: a JVM service, a cache of 60,000 objects on a heap of 192 MiB, files read beside it
# Debian: openjdk-17-jdk-headless
set -e
case $1 in
prepare)
    head -c 100000000 /dev/urandom > blob
    cat > Service.java << 'END'
import java.io.RandomAccessFile;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;

public class Service {
    public static void main(String[] arguments) throws Exception {
        Map<Integer, byte[]> cache = new LinkedHashMap<>(16, 0.75f, true) {
            protected boolean removeEldestEntry(Map.Entry<Integer, byte[]> eldest) { return size() > 30_000; }
        };
        Random random = new Random(1);
        long sum = 0;
        try (RandomAccessFile file = new RandomAccessFile("blob", "r")) {
            for (int request = 0; request < 6_000_000; request++) {
                int key = (int) Math.pow(48_000, random.nextDouble());
                byte[] value = cache.get(key);
                if (value == null) {
                    value = new byte[2_048];
                    file.seek(key * 2_048L);
                    file.readFully(value);
                    cache.put(key, value);
                }
                sum += value[request % 2_048];
            }
        }
        if (sum == 42) System.out.println(sum);
    }
}
END
    javac Service.java
    ;;
run) java -Xmx192m -XX:+UseSerialGC Service ;;
esac
