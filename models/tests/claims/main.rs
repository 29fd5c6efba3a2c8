//! What the learner claims, on made-up machines whose truth is known.

mod generator;

mod belief;
mod choice;
mod evidence;
mod learning;
mod watching;
