import { expect, test } from '@jest/globals';
import { chosenRepairs, isComplete, settlingCommands } from './pending-choices.ts';

const step = (urn: string, operation = 'creating') => ({
  urn,
  type: 'a:b:C',
  operation,
  isImportable: operation === 'creating',
});
const steps = [step('urn:pulumi:dev::p::a:b:C::one'), step('two', 'deleting'), step("urn:pulumi:dev::p::a:b:C::it's")];

test('only decided operations are repaired, and an import needs an id', () => {
  const choices = {
    0: { action: 'import', id: ' i-1 ' },
    1: { action: 'clear', id: '' },
    2: { action: 'keep', id: '' },
  } as const;
  expect(chosenRepairs(steps, choices)).toEqual([
    { index: 0, urn: steps[0]?.urn, repair: { action: 'import', id: 'i-1' } },
    { index: 1, urn: 'two', repair: { action: 'clear' } },
  ]);
  expect(isComplete(steps, choices)).toBe(true);
  expect(isComplete(steps, { 0: { action: 'import', id: ' ' } })).toBe(false);
});

test('the commands of the CLI name creations, safe for a shell', () => {
  expect(settlingCommands([step('two', 'deleting')], 'o/p/s')).toEqual(['pulumi refresh --stack o/p/s']);
  expect(settlingCommands(steps, 'o/p/s')).toEqual([
    'pulumi refresh --stack o/p/s --clear-pending-creates',
    "pulumi import a:b:C one '<id>' --stack o/p/s",
    `pulumi import a:b:C 'it'\\''s' '<id>' --stack o/p/s`,
  ]);
});
