-- What the scripts share that read any state: every algorithm's own functions, and errors that are about one key.
-- @include timed
local BAD_STATE, is_only_limit = 'HEADGATE_BAD_STATE the key holds something Headgate did not write', false
-- Under the clock of a test keys end at other times.
local reads_ttl, odd_ttl = clock == '', nil

-- Units that may still be charged beyond a limit of which `used` are; see src/algorithms/limit-options.ts.
local function room_beyond(units, used)
  return math.max(0, math.min(2 * units, 4294967295) - used)
end

-- A time to live that is missing, or that of before a step of the clock; nil for any other.
local function wrong_ttl(key, span)
  local ttl = call('PTTL', key)
  return (ttl == -1 or ttl > 2 * span) and ttl or nil
end

-- @functions
-- @include problem

-- @kinds current
local function current_KIND(NUMBERS)
  -- @current
end
-- @end
local currents = { KINDS }

-- Raises an error, before anything is written, if the numbers of a limit are not those of now. Each limit has `stride` arguments:
-- its kind is the first of them, and its numbers begin `skip` after that.
local function expect_current(first, stride, skip)
  for at = first, #ARGV, stride do
    local expect = currents[ARGV[at]]
    if expect then
      expect(ARGV[at + skip], ARGV[at + skip + 1], ARGV[at + skip + 2])
    end
  end
end
