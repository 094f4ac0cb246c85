-- The clock of scripts that read the time and are not in a hurry. ARGV[1] is the clock.
-- @include names
local clock = ARGV[1]
-- @inline clock.read
-- @inline clock.text
