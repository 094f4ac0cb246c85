-- What the scripts share that read any state: every algorithm's own functions, and errors that are about one key.
-- @include timed
local BAD_STATE, is_only_limit = 'HEADGATE_BAD_STATE the key holds something Headgate did not write', false
-- Under the clock of a test keys end at other times.
local reads_ttl, odd_ttl = clock == '', nil

-- Units that may still be charged beyond a limit of which `used` are; see src/algorithms/limit-options.ts.
local function room_beyond(units, used)
  return math.max(0, math.min(2 * units, 4294967295) - used)
end

-- @functions
-- @include problem
