//! What the learner claims, on synthetic machines whose truth is known.

mod generator;

mod belief;
mod choice;
mod evidence;
mod learning;
mod levers;
mod watching;
