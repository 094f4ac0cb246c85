-- peek.lua: answer as decide.lua would, and write nothing.
-- KEYS, ARGV and the reply are those of decide.lua; nothing is ever charged.
local CHARGES = false
-- @include questions
