-- peek.lua: answer as decide.lua would, and write nothing.
-- KEYS, ARGV and the reply are those of decide.lua; nothing is ever charged.

-- @include clock
-- @include checks
-- @include verdicts

local function show(reply, checks, now)
  local fits, failure = look(checks, now)
  if failure then
    return nil, failure
  end
  for _, check in ipairs(checks) do
    add_verdict(reply, check, now, check.wait_us, -1)
  end
  return fits
end

local function peek(reply, alternatives, shadow, now)
  local size = #reply
  reply[size + 1] = -1
  for index, checks in ipairs(alternatives) do
    local fits, failure = show(reply, checks, now)
    if failure then
      return fail(reply, size, failure)
    end
    if fits then
      reply[size + 1] = index - 1
      break
    end
  end
  for _, check in ipairs(shadow) do
    local _, failure = show(reply, { check }, now)
    if failure then
      add_unreadable(reply)
    end
  end
end

return answer_questions(peek)
