//! What a decision is: a closed enum of the answers that Linux gave at different times, its words, and all
//! answers in order. The decisions themselves stand in `decisions`, by the part of the kernel that asks.

macro_rules! decisions {
    ($(
        $(#[$doc:meta])*
        $name:ident = $words:literal {
            $($(#[$variant_doc:meta])* $variant:ident,)*
        }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub enum $name { $($(#[$variant_doc])* $variant,)* }

            impl $name {
                /// What is decided, in words.
                pub(crate) const DECISION: &'static str = $words;
                /// Every answer.
                pub(crate) const ANSWERS: &'static [Self] = &[$(Self::$variant,)*];
            }
        )*
    };
}

pub(crate) use decisions;
