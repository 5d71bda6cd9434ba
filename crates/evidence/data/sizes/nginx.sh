#!/bin/sh
# What: nginx, 12,000 files of 4 to 60 KiB by sendfile, 20,000 requests by Zipf's law
# Debian: nginx-light python3
set -e
case $1 in
prepare)
    /usr/bin/python3 - << 'END'
import os, random
random.seed(1)
os.mkdir("files")
for number in range(12_000):
    with open(f"files/{number}", "wb") as file:
        file.write(random.randbytes(random.randrange(4 << 10, 60 << 10)))
END
    cat > nginx.conf << END
daemon off; worker_processes 1; pid nginx.pid; error_log /dev/null; user root;
events { worker_connections 64; }
http { access_log off; sendfile on; keepalive_requests 100000;
       server { listen 127.0.0.1:7782; root $PWD/files; } }
END
    ;;
run)
    nginx -p . -c nginx.conf &
    /usr/bin/python3 - << 'END'
import http.client, random, time
random.seed(2)
for attempt in range(100):
    try:
        client = http.client.HTTPConnection("127.0.0.1", 7782)
        client.connect()
        break
    except OSError:
        time.sleep(0.02)
for _ in range(20_000):
    number = (int(12_000 ** random.random()) - 1) * 7_919 % 12_000
    client.request("GET", f"/{number}")
    assert len(client.getresponse().read()) >= 4 << 10
END
    kill "$(cat nginx.pid)"
    wait
    ;;
esac
