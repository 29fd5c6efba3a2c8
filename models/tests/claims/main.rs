//! What the learner claims, on synthetic machines whose truth is known.

mod generator;

mod belief;
mod choice;
mod evaluation;
mod evidence;
mod learning;
mod levers;
mod ompicolltune;
mod watching;
