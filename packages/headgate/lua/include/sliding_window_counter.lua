-- Sliding-window counter; see engine/sliding-window-counter.ts.
-- A hash: `start` of the current aligned window in microseconds, units in it (`current`) and before it (`previous`).
local counter = {}

function counter.load(key, limit, now)
  local fields, failure = hash_fields(key, 'start', 'current', 'previous')
  if failure then
    return nil, failure
  end
  local state = { key = key, current = 0, previous = 0 }
  local window = limit.window_us
  local stored, current, previous = 0, 0, 0
  if fields[1] then
    stored, current, previous = whole(fields[1]), whole(fields[2]), whole(fields[3])
    if not (stored and current and previous) then
      return nil, BAD_STATE
    end
  end
  local at = now
  if stored > now and stored - now <= window - math.ceil(window / limit.limit) then
    at = stored
  end
  local start = at - at % window
  if stored == start then
    state.current, state.previous = current, previous
  elseif stored + window == start then
    state.previous = current
  end
  state.at, state.start, state.stored_start = at, start, fields[1] and stored
  state.faded = state.previous == 0 and 0 or mul_div_ceil(state.previous, window - (at - start), window)
  return state
end

-- Elapsed time into a window at which at most `spare` of `previous` units still count.
local function fade_us(limit, previous, spare)
  if previous <= spare then
    return 0
  end
  return limit.window_us - mul_div_floor(spare, limit.window_us, previous)
end

function counter.wait_us(limit, state, cost, now)
  if cost > limit.limit then
    return NEVER
  end
  if state.current + state.faded + cost <= limit.limit then
    return 0
  end
  local spare = limit.limit - state.current - cost
  if spare >= 0 then
    return state.start + fade_us(limit, state.previous, spare) - now
  end
  return state.start + limit.window_us + fade_us(limit, state.current, limit.limit - cost) - now
end

function counter.remaining(limit, state)
  return math.max(0, limit.limit - state.current - state.faded)
end

function counter.reset_after_us(limit, state, now)
  if state.current > 0 then
    return state.start + 2 * limit.window_us - now
  end
  return state.previous > 0 and state.start + limit.window_us - now or 0
end

local function save_counter(limit, state, now)
  if state.stored_start == state.start then
    redis.call('HSET', state.key, 'current', state.current, 'previous', state.previous)
    return
  end
  -- A new window: two of them from now on cover all the time in which this state can matter.
  redis.call('HSET', state.key, 'start', state.start, 'current', state.current, 'previous', state.previous)
  expire_after(state.key, math.max(0, state.start - now) + 2 * limit.window_us)
  state.stored_start = state.start
end

function counter.charge(limit, state, cost, now)
  state.current = state.current + cost
  save_counter(limit, state, now)
  return state.at
end

function counter.refund(limit, state, units, charged_at, now)
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
    save_counter(limit, state, now)
  end
  return units - left
end
