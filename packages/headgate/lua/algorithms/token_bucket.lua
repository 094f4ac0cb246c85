-- Token bucket; see src/algorithms/token-bucket.ts.
-- @kind bucket units rate capacity_text
--
-- A hash: `tokens` left when last written, with six decimals; `lastRefill`, that time in microseconds, 16 digits; and
-- `capacity`, `<capacity>/<refill per second>`, under which it was written. What is missing is what counts, so a changed capacity
-- keeps what was used. `reset` is the time of the last reset. The time to live is renewed once per fill time, and when the
-- numbers changed.

-- @prepare
local full_N = units_N * 1000000
local fill_us_N = 1000000 * ceil(units_N / rate_N)
local stretch_N = now - now % fill_us_N

-- @load
local fields_N = call('HMGET', key_N, 'tokens', 'lastRefill', 'capacity')
local missing_N, stored_N, written_N, at_N, odd_N, is_kept_N = 0, 0, 0, now, false, false
if fields_N[1] then
  local tokens, text, capacity = fields_N[1], fields_N[2], units_N
  if fields_N[3] ~= capacity_text_N then
    local _, _, before = find(fields_N[3] or '', '^(%d+)/[%d.e+-]+$')
    capacity = (before or -1) + 0
  end
  if not text or #text ~= 16 or string.byte(tokens, -7) ~= 46 then
    error(BAD_STATE, 0)
  end
  written_N = text + 0
  local left = tokens * 1000000 + 0.5
  left = left - left % 1
  if #tokens > 15 then
    -- Too many digits for one multiplication to be exact.
    left = string.sub(tokens, 1, -8) * 1000000 + string.sub(tokens, -6)
  end
  stored_N = capacity * 1000000 - left
  if not (stored_N >= 0 and stored_N <= capacity * 1000000 and written_N >= 0) then
    error(BAD_STATE, 0)
  end
  missing_N = stored_N < full_N and stored_N or full_N
  if written_N <= now then
    is_kept_N = written_N >= stretch_N and fields_N[3] == capacity_text_N
    local refilled = (now - written_N) * rate_N
    missing_N = missing_N - (refilled - refilled % 1)
    if missing_N < 0 then
      missing_N = 0
    end
  elseif written_N - now <= (units_N - 1) * 1000000 / rate_N then
    -- The clock stepped back: it is waited for.
    at_N, odd_N = written_N, true
  else
    -- The wait would be longer than a whole bucket takes to fill: from before a step of the clock.
    missing_N = 0
  end
elseif call('EXISTS', key_N) == 1 then
  error(BAD_STATE, 0)
end
local left_N = full_N - missing_N - cost_N * 1000000

-- @write
-- In: `left`, the micro-tokens left at `at`.
local part = left % 1000000
local tokens = format('%d.%06d', (left - part) / 1000000, part)
call('HSET', key_N, 'tokens', tokens, 'lastRefill', format('%016d', at), 'capacity', capacity_text_N)
call('PEXPIRE', key_N, format('%d', ceil((2 * fill_us_N + at - now) / 1000) + grace_ms))

-- @charge
if is_kept_N then
  local part = left_N % 1000000
  call('HSET', key_N, 'tokens', format('%d.%06d', (left_N - part) / 1000000, part), 'lastRefill', now_text)
else
  local left, at = left_N, at_N
  -- @write
end

-- @state stored_N, written_N

-- @functions
-- Least whole number of microseconds in which `micro` micro-tokens are refilled.
local function refill_us(micro, rate)
  local elapsed = ceil(micro / rate)
  -- No whole number is exact any more, and one more would not make a difference.
  if not (elapsed < 4503599627370496) then
    return elapsed
  end
  while floor(elapsed * rate) < micro do
    elapsed = elapsed + 1
  end
  while elapsed > 0 and floor((elapsed - 1) * rate) >= micro do
    elapsed = elapsed - 1
  end
  return elapsed
end

-- @refund
if charged_at then
  local reset = call('HGET', key_N, 'reset')
  if charged_at <= (tonumber(reset or nil) or 0) or now - charged_at >= 2 * fill_us_N then
    return 0
  end
end
if missing_N > 0 and stored_N > full_N then
  return 0
end
local refilled = math.max(0, now - held_since) * rate_N
local back = math.min(math.max(0, amount - ceil(refilled / 1000000)) * 1000000, missing_N)
if back > 0 then
  local left, at = full_N - missing_N + back, at_N
  -- @write
end
return ceil(back / 1000000)

-- @beyond
-- A debt is a bucket that begins to fill later; see src/algorithms/token-bucket.ts.
if units_N > 0 then
  local missing, at = missing_N + amount * 1000000, at_N
  if missing > full_N then
    local owed_us = at - now + refill_us(missing - full_N, rate_N)
    at = now + math.min(floor((units_N - 1) * 1000000 / rate_N), owed_us)
    missing = full_N
  end
  local left = full_N - missing
  -- @write
end

-- @reset
local reset = math.max(at_N, tonumber(call('HGET', key_N, 'reset') or nil) or 0)
-- DEL comes first: a server that is out of memory refuses a script at a first write that needs some.
call('DEL', key_N)
local tokens, never = format('%d.000000', units_N), format('%016d', 0)
call('HSET', key_N, 'reset', format('%d', reset), 'tokens', tokens, 'lastRefill', never, 'capacity', capacity_text_N)
call('PEXPIRE', key_N, format('%d', ceil((2 * fill_us_N + at_N - now) / 1000) + grace_ms))
