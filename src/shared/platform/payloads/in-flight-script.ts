import { fairnessRules } from './in-flight-rules.ts';

/**
 * The rules of `in-flight-rules.ts` as Lua functions of the same names. They exist twice because Redis decides for all processes in one step, and a
 * server without Redis runs no Lua; the numbers are shared, and a differential contract test compares the two on random budgets. `budget` is
 * `{capacity, complete, arriving}`: bytes of the complete bodies by fairness key, and the arriving bodies, oldest first. In a
 * body, `blocked` 0 is not waiting, and -1 is no `claim` or `limit`. Two names differ because Redis stores them: `share` is the fairness key, and
 * `leaves` is `evicted`.
 */
export const inFlightScript = `
local maxRatioToFree, maxKeys, maxEvictions = ${fairnessRules.maxRatioToFree}, ${fairnessRules.maxKeys}, ${fairnessRules.maxEvictions}

local function totalOf(budget, excluded)
  local total = 0
  for _, bytes in pairs(budget.complete) do total = total + bytes end
  for _, each in ipairs(budget.arriving) do
    if not excluded[each] then total = total + each.held end
  end
  return total
end

local function usedByKey(budget, excluded)
  local used = {}
  for share, bytes in pairs(budget.complete) do used[share] = bytes end
  for _, each in ipairs(budget.arriving) do
    if each.held > 0 and not excluded[each] then used[each.share] = (used[each.share] or 0) + each.held end
  end
  return used
end

local function fairShare(budget, body)
  local shares, count = { [body.share] = true }, 1
  local function add(share)
    if not shares[share] then
      shares[share] = true
      count = count + 1
    end
  end
  for share in pairs(budget.complete) do add(share) end
  for _, each in ipairs(budget.arriving) do add(each.share) end
  return budget.capacity / math.min(count, maxKeys)
end

local function needOf(budget, body, bytes)
  if body.held > 0 then return bytes end
  return math.min(math.max(body.claim, bytes), budget.capacity)
end

local function isOverLimit(budget, body, bytes, excluded)
  if body.limit < 0 or (body.held > 0 and body.claim >= 0) then return false end
  local used = budget.complete[body.share] or 0
  for _, each in ipairs(budget.arriving) do
    if each == body and body.held > 0 then break end
    if each ~= body and each.held > 0 and each.share == body.share and not excluded[each] then
      used = used + math.max(each.held, math.min(each.claim, budget.capacity))
    end
  end
  return used > 0 and used + body.held + needOf(budget, body, bytes) > body.limit
end

local function claimedBy(budget, body, excluded)
  local claimed = budget.complete[body.share] or 0
  for _, each in ipairs(budget.arriving) do
    if each ~= body and each.held > 0 and each.share == body.share and not excluded[each] then
      claimed = claimed + math.max(each.held, math.min(each.claim, budget.capacity))
    end
  end
  return claimed
end

local function isOverRatio(budget, body, bytes, excluded)
  local claimed = claimedBy(budget, body, excluded)
  if claimed == 0 then return false end
  local used = usedByKey(budget, excluded)[body.share] or 0
  local need = needOf(budget, body, bytes)
  return claimed + need > maxRatioToFree * (budget.capacity - totalOf(budget, excluded) + used - claimed - need)
end

local function waitsForOwnKey(budget, body, excluded)
  return body.held == 0 and (isOverRatio(budget, body, 1, excluded) or isOverLimit(budget, body, 1, excluded))
end

local function canAllComplete(budget, body, bytes, excluded)
  local after, held = {}, 0
  for _, each in ipairs(budget.arriving) do
    local has = each.held
    if each == body then has = has + bytes end
    if has > 0 and not excluded[each] then
      after[#after + 1] = { held = has, need = math.max(math.min(math.max(each.claim, 0), budget.capacity) - has, 0) }
      held = held + has
    end
  end
  table.sort(after, function(one, other) return one.need < other.need end)
  local free = budget.capacity - held
  for _, each in ipairs(after) do
    if each.need > free then return false end
    free = free + each.held
  end
  return true
end

local function mayAcquire(budget, body, bytes, excluded)
  local others = totalOf(budget, excluded) - body.held
  if others == 0 then return true end
  if others + body.held + bytes > budget.capacity then return false end
  if isOverLimit(budget, body, bytes, excluded) then return false end
  if body.held == 0 then
    if isOverRatio(budget, body, bytes, excluded) then return false end
    for _, each in ipairs(budget.arriving) do
      if not excluded[each] and not waitsForOwnKey(budget, each, excluded) then
        if each ~= body and each.blocked > 0 then return false end
        break
      end
    end
    if others + needOf(budget, body, bytes) > budget.capacity then return false end
  end
  return canAllComplete(budget, body, bytes, excluded)
end

local function mayWait(budget, body, bytes)
  local none = {}
  if isOverLimit(budget, body, bytes, none) then return true end
  local used, part = usedByKey(budget, none), fairShare(budget, body)
  if claimedBy(budget, body, none) > (used[body.share] or 0) then return true end
  if (used[body.share] or 0) + needOf(budget, body, bytes) > part then return false end
  for _, each in ipairs(budget.arriving) do
    if each ~= body and each.held > 0 and (each.stalled or each.leaves) then return true end
  end
  for share, bytesUsed in pairs(used) do
    if share ~= body.share and bytesUsed > part then return true end
  end
  return false
end

local function nextEviction(budget, body, bytes, excluded, waited, withYielding, withOthers)
  local function newest(accepts)
    local yielding, other
    for _, each in ipairs(budget.arriving) do
      if each ~= body and each.held > 0 and not excluded[each] and accepts(each) then
        if each.yields then yielding = each else other = each end
      end
    end
    local found = yielding or other
    if found and waited >= (found.yields and withYielding or withOthers) then return found end
  end

  local stalled
  for _, each in ipairs(budget.arriving) do
    if each ~= body and each.held > 0 and not excluded[each] and each.stalled then
      if not stalled or each.held >= stalled.held then stalled = each end
    end
  end
  if stalled then return stalled end

  local used, part = usedByKey(budget, excluded), fairShare(budget, body)
  if (used[body.share] or 0) + needOf(budget, body, bytes) <= part then
    local function isAbove(each)
      return each.share ~= body.share and (used[each.share] or 0) > part
        and (each ~= budget.arriving[1] or each.claim < 0)
    end
    local maxUsed = -1
    for _, each in ipairs(budget.arriving) do
      if each ~= body and each.held > 0 and not excluded[each] and isAbove(each) then
        maxUsed = math.max(maxUsed, used[each.share])
      end
    end
    local found = newest(function(each) return isAbove(each) and used[each.share] == maxUsed end)
    if found then return found end
  end
  if body == budget.arriving[1] then return newest(function() return true end) end
  if body.yields then return end
  local hasPriority = body.held > 0
  if not hasPriority then
    for _, each in ipairs(budget.arriving) do
      if not each.yields then
        hasPriority = each == body
        break
      end
    end
  end
  if hasPriority then return newest(function(each) return each.yields end) end
end

local function chooseEvictions(budget, body, bytes, now, withYielding, withOthers)
  if body.blocked == 0 then return {} end
  local excluded, chosen = {}, {}
  for _, each in ipairs(budget.arriving) do
    if each.leaves and each ~= body then excluded[each] = true end
  end
  if mayAcquire(budget, body, bytes, excluded) then return {} end
  while #chosen < maxEvictions do
    local found = nextEviction(budget, body, bytes, excluded, now - body.blocked, withYielding, withOthers)
    if not found then return {} end
    excluded[found] = true
    chosen[#chosen + 1] = found
    if mayAcquire(budget, body, bytes, excluded) then return chosen end
  end
  return chosen
end
`;
