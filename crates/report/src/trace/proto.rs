//! The wire format of protocol buffers, as far as a trace needs it: written, never read.
//!
//! A message is a row of fields, each a number with a wire type and a value; what is not written has its
//! default. Left out: packed fields, groups, and any check against a schema, which is a test's business.
//! Next: [`super::perfetto`], which knows the numbers.

/// How a field's value is laid out, in the low bits of its tag.
#[derive(Debug, Clone, Copy)]
enum Wire {
    Varint = 0,
    Fixed64 = 1,
    Delimited = 2,
}

/// A message that is being written to the end of `out`.
#[derive(Debug)]
pub(super) struct Message<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Message<'a> {
    /// The outermost message, which has no length before it.
    pub(super) const fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// An unsigned number, a truth value or an enum.
    pub(super) fn uint(&mut self, field: u32, value: u64) {
        self.tag(field, Wire::Varint);
        varint(self.out, value);
    }

    /// A signed number of type `int64` or `int32`: negative ones take ten bytes.
    pub(super) fn int(&mut self, field: u32, value: i64) {
        self.uint(field, value.cast_unsigned());
    }

    /// A `double`.
    pub(super) fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    /// A `fixed64`.
    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, Wire::Fixed64);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    /// A text.
    pub(super) fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// Bytes, or a message that has been written elsewhere.
    pub(super) fn bytes(&mut self, field: u32, value: &[u8]) {
        self.tag(field, Wire::Delimited);
        varint(self.out, value.len() as u64);
        self.out.extend_from_slice(value);
    }

    /// A message within this one.
    pub(super) fn message(&mut self, field: u32, write: impl FnOnce(&mut Message<'_>)) {
        self.tag(field, Wire::Delimited);
        let length_at = self.out.len();
        self.out.push(0);
        write(&mut Message { out: self.out });
        let length = self.out.len() - length_at - 1;
        if length < 0x80 {
            self.out[length_at] = length as u8;
            return;
        }
        // Rare and short: what has been written moves up by the bytes that its length takes beyond one.
        let mut bytes = Vec::with_capacity(10);
        varint(&mut bytes, length as u64);
        self.out.splice(length_at..=length_at, bytes);
    }

    fn tag(&mut self, field: u32, wire: Wire) {
        varint(self.out, u64::from(field) << 3 | wire as u64);
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Message<'_>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut Message::new(&mut out));
        out
    }

    /// The examples of the encoding's own documentation, <https://protobuf.dev/programming-guides/encoding>.
    #[test]
    fn the_examples_of_the_documentation_come_out() {
        assert_eq!(written(|m| m.uint(1, 150)), [0x08, 0x96, 0x01]);
        assert_eq!(written(|m| m.text(2, "testing")), b"\x12\x07testing");
        assert_eq!(written(|m| m.message(3, |m| m.uint(1, 150))), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let minus_two = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(written(|m| m.int(1, -2))[1..], minus_two);
        assert_eq!(written(|m| m.double(1, 1.0)), [0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    }

    #[test]
    fn a_message_longer_than_its_first_byte_of_length_can_say_moves_up() {
        for length in [0, 126, 127, 128, 129, 16_383, 16_384, 70_000] {
            let text = "x".repeat(length);
            let inner = written(|m| m.text(1, &text));
            let nested = written(|m| m.message(2, |m| m.message(3, |m| m.text(1, &text))));
            let by_parts = written(|m| m.bytes(2, &written(|m| m.bytes(3, &inner))));
            assert_eq!(nested, by_parts, "{length}");
        }
    }
}
