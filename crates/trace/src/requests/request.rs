//! One recorded request, and the formats that it may be written in.

use std::str::FromStr;

use language::names::UnknownName;

/// One request of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// When it was made, in nanoseconds since the trace's own epoch. Traces with a resolution of
    /// one second have many requests at one time; order is that of the file.
    pub time_ns: u64,
    /// Whether it reads or writes.
    pub kind: RequestKind,
    /// Which object: the block number in a block trace, the object's id otherwise.
    pub object: u64,
    /// Where on the device a block trace's request starts; 0 in traces of whole objects.
    pub offset_bytes: u64,
    /// How much is read or written.
    pub size_bytes: u32,
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// It reads. Also every request of a trace that does not tell.
    Read,
    /// It writes.
    Write,
}

/// The formats that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceFormat {
    /// Text: `version,time,op,size,lbn`, as CloudPhysics' block traces are published with
    /// libCacheSim, or a time, a size and a block or an offset in columns that a heading names. See
    /// the comment on the reader for what each column means.
    BlockCsv,
    /// Text: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, as Microsoft Research's block traces of
    /// servers in Cambridge are published, below such a heading or without.
    Msr,
    /// Text: `time,object,size`, time in seconds, or these in columns that a heading names.
    ObjectCsv,
    /// libCacheSim's `oracleGeneral`: records of 24 bytes, little endian.
    OracleGeneral,
}

impl TraceFormat {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::BlockCsv, Self::Msr, Self::ObjectCsv, Self::OracleGeneral];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BlockCsv => "block-csv",
            Self::Msr => "msr",
            Self::ObjectCsv => "object-csv",
            Self::OracleGeneral => "oracle-general",
        }
    }

    /// Whether requests address ranges of one device ([`Request::offset_bytes`]) rather than
    /// whole objects.
    pub const fn is_block(self) -> bool {
        matches!(self, Self::BlockCsv | Self::Msr)
    }
}

impl FromStr for TraceFormat {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        (Self::ALL.into_iter().find(|format| format.name() == text))
            .ok_or_else(|| UnknownName::new("trace format", text, Self::ALL.map(Self::name)))
    }
}
