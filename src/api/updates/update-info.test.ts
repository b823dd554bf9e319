import { expect, test } from '@jest/globals';
import type { HistoryRepository, UpdateInfoRow, UpdateText } from '../../shared/updates/history-repository.ts';
import { updateInfoJson, wholeBytes } from './update-info.ts';

const environments = '[{"id":"e"}]';
const inForce = {
  updateId: 'used',
  config: '{"a":1}',
  environment: JSON.stringify({ 'stack.environments': environments }),
};

async function sent(
  environment: object,
  of: typeof inForce | (Omit<typeof inForce, 'environment'> & { environment: null }),
) {
  const texts: Record<UpdateText, string> = {
    message: 'm',
    environment: JSON.stringify(environment),
    config: `{"a":"${'x'.repeat(wholeBytes)}"}`,
    resourceChanges: '{}',
  };
  const readText = async (_: string, text: UpdateText, from: number, chars: number) =>
    texts[text].slice(from - 1, from - 1 + chars);
  const row = {
    id: 'newest',
    message: null,
    environment: null,
    config: null,
    resourceChanges: null,
    createdAt: new Date(0),
  };
  const shown = {
    ...row,
    missingEntries: null,
    stateDeletedAt: null,
    eventsDeletedAt: null,
    startedAt: null,
    endedAt: null,
  };
  const history = { readText } as unknown as HistoryRepository;
  const text = (await Array.fromAsync(updateInfoJson(history, shown as unknown as UpdateInfoRow, of))).join('');
  return JSON.parse(text) as { config: object; environment: Record<string, string> };
}

test('an update with large texts keeps its environment beside the configuration in force', async () => {
  const { config, environment } = await sent({ 'git.head': 'b', 'stack.environments': '[]' }, inForce);
  expect(config).toEqual({ a: 1 });
  expect(environment).toEqual({ 'git.head': 'b', 'stack.environments': environments });
});

test('environments too large for memory are sent as they are', async () => {
  const large = { 'git.head': 'b'.repeat(wholeBytes), 'stack.environments': '[]' };
  expect((await sent(large, inForce)).environment).toEqual(large);
  const own = { 'git.head': 'b', 'stack.environments': '[]' };
  expect((await sent(own, { ...inForce, environment: null })).environment).toEqual(own);
});
