-- The text of an error that is about the value of one key, raised before anything was written; nil for any other.
local function problem_of_key(problem)
  local text = type(problem) == 'table' and problem.err or problem
  for _, words in ipairs({ 'HEADGATE_BAD_STATE', 'WRONGTYPE', 'not an integer', 'attempt to ' }) do
    if string.find(text, words, 1, true) then
      return text
    end
  end
end

-- An error of the server, handed on in its own words.
local function failed(problem)
  return type(problem) == 'table' and problem or redis.error_reply(problem)
end
