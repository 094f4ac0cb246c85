-- Sliding-window counter; see engine/sliding-window-counter.ts.
-- A hash: `start` of the current aligned window in microseconds, units in it (`current`) and before it (`previous`).
-- `units` are the limit's, `span` is its window in microseconds.

-- @fragment counter.locals
local window_start, window_start_text, current, previous, start, is_new_window, faded

-- @fragment counter.prepare
-- The window of now, which most states are in already, worked out once for all of them.
window_start = now - now % span
window_start_text = string.format('%d', window_start)

-- @fragment counter.load
-- In: `key`, `units`, `span`, and what counter.prepare worked out. Out: `at` and the locals above, or `failure`.
local fields = redis.pcall('HMGET', key, 'start', 'current', 'previous')
local stored_text = fields[1]
at, start, current, previous, is_new_window = now, window_start, 0, 0, true
if stored_text == window_start_text then
  -- As `whole` does it: this is what nearly every check comes to, and calling a function would be a tenth of our own part.
  current = fields[2] and #fields[2] <= 16 and string.find(fields[2], '^%d+$') and tonumber(fields[2])
  previous, is_new_window = fields[3] == '0' and 0 or whole(fields[3]), false
  if not (current and previous) then
    failure = BAD_STATE
  end
elseif stored_text then
  local stored, newest, before = whole(stored_text), whole(fields[2]), whole(fields[3])
  if not (stored and newest and before) then
    failure = BAD_STATE
  else
    if stored > now and stored - now <= span - math.ceil(span / units) then
      at, start = stored, stored - stored % span
    end
    if stored == start then
      current, previous, is_new_window = newest, before, false
    elseif stored + span == start then
      previous = newest
    end
  end
else
  -- @inline hash.empty
end
if not failure then
  faded = 0
  if previous > 0 then
    local elapsed = at - start
    faded = previous * (span - elapsed)
    if faded <= MAX_SAFE then
      faded = math.ceil(faded / span)
    else
      local a, b, c = previous, elapsed, span
      -- @inline fraction.floor
      faded = previous - quotient
    end
  end
end

-- @fragment counter.wait
-- In: `cost` and what was loaded. Out: `wait_us`.
local spare = units - current - cost
if faded <= spare then
  wait_us = 0
elseif cost > units then
  wait_us = NEVER
else
  -- Either enough of the previous window slides out while this one lasts, or this one must become the previous.
  local a, b, c = spare, span, previous
  wait_us = start - now
  if spare < 0 then
    a, c, wait_us = units - cost, current, wait_us + span
  end
  if c > a then
    -- @inline fraction.floor
    wait_us = wait_us + span - quotient
  end
end

-- @fragment counter.charge
current = current + cost
if is_new_window then
  local start_text = start == window_start and window_start_text or string.format('%d', start)
  local previous_text = previous == 0 and '0' or string.format('%d', previous)
  redis.call('HSET', key, 'start', start_text, 'current', string.format('%d', current), 'previous', previous_text)
  -- Two windows from now on cover all the time in which this state can matter.
  local keep_us = (start > now and start - now or 0) + 2 * span
  redis.call('PEXPIRE', key, string.format('%d', math.ceil(keep_us / 1000) + grace_ms))
else
  redis.call('HSET', key, 'current', string.format('%d', current))
end

-- @fragment counter.left
left = units - current - faded

-- @fragment counter.tell
-- Units left, and the time until nothing counts any more.
remaining = units - current - faded
if remaining < 0 then
  remaining = 0
end
if current > 0 then
  reset_us = start + 2 * span - now
elseif previous > 0 then
  reset_us = start + span - now
else
  reset_us = 0
end

-- @fragment counter.keep
kept[check] = { current, previous, start, is_new_window, faded, at }

-- @fragment counter.recall
local state = kept[check]
current, previous, start, is_new_window, faded, at = state[1], state[2], state[3], state[4], state[5], state[6]

-- @fragment counter.functions
local function make_counter()
  local counter = {}

  function counter.load(key, limit)
    local units, span, at, failure = limit.limit, limit.window_us, nil, nil
    -- @inline counter.locals
    -- @inline counter.prepare
    -- @inline counter.load
    if failure then
      return nil, failure
    end
    return {
      key = key,
      current = current,
      previous = previous,
      faded = faded,
      at = at,
      start = start,
      is_new_window = is_new_window,
    }
  end

  local function save(limit, state)
    local start, current, previous = text_of(state.start), text_of(state.current), text_of(state.previous)
    redis.call('HSET', state.key, 'start', start, 'current', current, 'previous', previous)
    if state.is_new_window then
      expire_after(state.key, math.max(0, state.start - now) + 2 * limit.window_us)
    end
  end

  function counter.charge_beyond(limit, state, units)
    local cost = math.min(units, room_beyond(limit, state.current + state.faded))
    if cost > 0 then
      state.current = state.current + cost
      save(limit, state)
    end
  end

  function counter.refund(limit, state, units, charged_at)
    local charged_start = charged_at and charged_at - charged_at % limit.window_us
    local left = units
    if not charged_at or charged_start == state.start - limit.window_us then
      local back = math.min(left, state.previous)
      state.previous, left = state.previous - back, left - back
    end
    if not charged_at or charged_start == state.start then
      local back = math.min(left, state.current)
      state.current, left = state.current - back, left - back
    end
    if left < units then
      save(limit, state)
    end
    return units - left
  end

  return counter
end
