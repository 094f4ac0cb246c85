-- Sliding-window counter; see engine/sliding-window-counter.ts.
-- A hash: `start` of the current aligned window in microseconds, units in it (`current`) and before it (`previous`).
local function make_counter()
  local counter = {}

  -- The window of now, which most states are in already, worked out once for all of them.
  local function prepare(limit)
    limit.start = now - now % limit.window_us
    limit.start_text = text_of(limit.start)
  end

  function counter.load(key, limit)
    local fields = redis.pcall('HMGET', key, 'start', 'current', 'previous')
    local window, stored_text, current, previous = limit.window_us, fields[1], 0, 0
    if not limit.start then
      prepare(limit)
    end
    local at, start, is_new_window = now, limit.start, true
    if stored_text == limit.start_text then
      current = whole(fields[2])
      previous = fields[3] == '0' and 0 or whole(fields[3])
      if not (current and previous) then
        return nil, BAD_STATE
      end
      is_new_window = false
    elseif stored_text then
      local stored, newest, before = whole(stored_text), whole(fields[2]), whole(fields[3])
      if not (stored and newest and before) then
        return nil, BAD_STATE
      end
      if stored > now and stored - now <= window - math.ceil(window / limit.limit) then
        at, start = stored, stored - stored % window
      end
      if stored == start then
        current, previous, is_new_window = newest, before, false
      elseif stored + window == start then
        previous = newest
      end
    else
      local failure = failure_of(key, fields)
      if failure then
        return nil, failure
      end
    end
    return {
      key = key,
      current = current,
      previous = previous,
      at = at,
      start = start,
      is_new_window = is_new_window,
      faded = previous == 0 and 0 or mul_div_ceil(previous, window - (at - start), window),
    }
  end

  -- Elapsed time into a window at which at most `spare` of `previous` units still count.
  local function fade_us(limit, previous, spare)
    if previous <= spare then
      return 0
    end
    return limit.window_us - mul_div_floor(spare, limit.window_us, previous)
  end

  function counter.wait_us(limit, state, cost)
    local spare = limit.limit - state.current - cost
    if state.faded <= spare then
      return 0
    end
    if cost > limit.limit then
      return NEVER
    end
    if spare >= 0 then
      return state.start + fade_us(limit, state.previous, spare) - now
    end
    return state.start + limit.window_us + fade_us(limit, state.current, limit.limit - cost) - now
  end

  -- Units left, and the time until nothing counts any more.
  function counter.tell(limit, state)
    local remaining = limit.limit - state.current - state.faded
    local windows = state.current > 0 and 2 or state.previous > 0 and 1 or 0
    return remaining > 0 and remaining or 0, windows == 0 and 0 or state.start + windows * limit.window_us - now
  end

  local function save(limit, state)
    local current, previous = text_of(state.current), state.previous == 0 and '0' or text_of(state.previous)
    local start = state.start == limit.start and limit.start_text or text_of(state.start)
    redis.call('HSET', state.key, 'start', start, 'current', current, 'previous', previous)
    if state.is_new_window then
      -- Two windows from now on cover all the time in which this state can matter.
      expire_after(state.key, math.max(0, state.start - now) + 2 * limit.window_us)
      state.is_new_window = false
    end
  end

  function counter.charge(limit, state, cost)
    state.current = state.current + cost
    if state.is_new_window then
      save(limit, state)
    else
      redis.call('HSET', state.key, 'current', text_of(state.current))
    end
    return state.at
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
