//! Enums whose values have names: the enum, its values in order, and their names in files, in one table.

/// Defines an enum with `ALL`, `name` and `from_name`.
macro_rules! named {
    ($(#[$of:meta])* pub enum $Kind:ident { $($(#[$doc:meta])* $Value:ident = $name:literal,)* }) => {
        $(#[$of])*
        pub enum $Kind { $($(#[$doc])* $Value,)* }

        impl $Kind {
            /// Every one, in order.
            pub const ALL: [$Kind; [$($name),*].len()] = [$($Kind::$Value),*];

            /// The name in files, settings and on the command line.
            pub const fn name(self) -> &'static str {
                match self { $($Kind::$Value => $name,)* }
            }

            pub fn from_name(name: &str) -> Option<$Kind> {
                Self::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    };
}
pub(crate) use named;
