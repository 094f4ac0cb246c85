-- Sliding-window counter; see algorithms/sliding-window-counter.ts.
-- A hash: `start` of the current aligned window in microseconds, units in it (`current`) and before it (`previous`).
-- `units` are the limit's, `span` is its window in microseconds.

-- @fragment counter.locals
local window_start, window_start_text, last_start_text, counter_keep_text
local current, previous, start, is_new_window, faded

-- @fragment counter.prepare
-- The same for all keys: the window of now, which most states are in already.
window_start = now - now % span
window_start_text = format('%d', window_start)

-- @fragment counter.load
-- In: `key`, `units`, `span`, `expects_new`, and what counter.prepare worked out. Out: `at` and the locals above, or `failure`.
local fields, stored_text
if not expects_new or call('EXISTS', key) == 1 then
  fields = try('HMGET', key, 'start', 'current', 'previous')
  stored_text = fields[1]
end
at, start, current, previous, is_new_window = now, window_start, 0, 0, true
if stored_text == window_start_text then
  -- As `whole` does it: this is what nearly every check comes to, and calling a function would be a tenth of our own part.
  current = fields[2] and #fields[2] <= 16 and find(fields[2], '^%d+$') and fields[2] + 0
  previous, is_new_window = fields[3] == '0' and 0 or whole(fields[3]), false
  if not (current and previous) then
    failure = BAD_STATE
  end
elseif stored_text and stored_text == (last_start_text or format('%d', window_start - span)) then
  last_start_text, previous = stored_text, fields[2] and #fields[2] <= 16 and find(fields[2], '^%d+$') and fields[2] + 0
  if not (previous and (fields[3] == '0' or whole(fields[3]))) then
    failure = BAD_STATE
  end
elseif stored_text then
  local stored, newest, before = whole(stored_text), whole(fields[2]), whole(fields[3])
  if not (stored and newest and before) then
    failure = BAD_STATE
  else
    if stored > now and stored - now <= span - ceil(span / units) then
      at, start = stored, stored - stored % span
    end
    if stored == start then
      current, previous, is_new_window = newest, before, false
    elseif stored + span == start then
      previous = newest
    end
  end
elseif fields then
  -- @inline hash.empty
end
expects_new = not stored_text
if not failure then
  faded = 0
  if previous > 0 then
    local elapsed = at - start
    faded = previous * (span - elapsed)
    if faded <= MAX_SAFE then
      faded = ceil(faded / span)
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
  -- Two windows from now on cover all the time in which this state can matter.
  counter_keep_text = counter_keep_text or format('%d', ceil(2 * span / 1000) + grace_ms)
  local start_text, keep_text = window_start_text, counter_keep_text
  if start ~= window_start then
    start_text = format('%d', start)
    keep_text = format('%d', ceil(((start > now and start - now or 0) + 2 * span) / 1000) + grace_ms)
  end
  local previous_text = previous == 0 and '0' or format('%d', previous)
  call('HSET', key, 'start', start_text, 'current', format('%d', current), 'previous', previous_text)
  call('PEXPIRE', key, keep_text)
else
  call('HSET', key, 'current', format('%d', current))
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
    local units, span, at, failure, expects_new = limit.limit, limit.window_us, nil, nil, nil
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
    call('HSET', state.key, 'start', start, 'current', current, 'previous', previous)
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
