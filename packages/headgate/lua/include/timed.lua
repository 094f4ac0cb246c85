-- What a script needs that reads the time and is not in a hurry. ARGV[1] is the clock.
local clock = ARGV[1]
-- @inline clock.read
-- @inline clock.text
