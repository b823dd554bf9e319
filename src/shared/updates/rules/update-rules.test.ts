import { describe, expect, test } from '@jest/globals';
import { describeScope, parseRule, UpdateRules } from './update-rules.ts';

describe('a rule that is written', () => {
  test.each([
    [{ kind: 'lock-wait', settings: { seconds: 60 } }, 'organization acme'],
    [{ kind: 'lock-wait', project: 'web', settings: { seconds: 0 } }, 'project web'],
    [{ kind: 'lock-wait', project: 'web', stack: 'prod', settings: { seconds: 86_400 } }, 'stack web/prod'],
    [{ kind: 'freeze', tag: { name: 'env', value: 'prod' }, settings: {} }, 'stacks with the tag env=prod'],
    [
      { kind: 'freeze', project: 'web', tag: { name: 'env', value: '' }, settings: { mode: 'wait' } },
      'stacks with the tag env= of project web',
    ],
    [{ kind: 'freeze', settings: { until: '2026-01-01T00:00:00Z' }, note: 'Sale' }, 'organization acme'],
  ])('%j is valid', (written, scope) => {
    expect(describeScope(parseRule(written), 'acme')).toBe(scope);
  });

  test.each([
    [{ kind: 'other', settings: {} }, 'There is no rule kind "other"'],
    [{ kind: 'constructor', settings: {} }, 'There is no rule kind'],
    [{ kind: 'lock-wait', settings: {} }, 'The settings of a rule lock-wait are not valid'],
    [{ kind: 'lock-wait', settings: { seconds: -1 } }, 'not valid'],
    [{ kind: 'lock-wait', settings: { seconds: '1' } }, 'not valid'],
    [{ kind: 'lock-wait', settings: { seconds: 1, more: 1 } }, 'not valid'],
    [{ kind: 'lock-wait', settings: null }, 'not valid'],
    [{ kind: 'freeze', settings: { until: 'tomorrow' } }, 'not valid'],
    [{ kind: 'freeze', settings: { until: '2026-12-31T23:59:60Z' } }, '"2026-12-31T23:59:60Z" is not a time'],
    [{ kind: 'lock-wait', stack: 'prod', settings: { seconds: 1 } }, 'needs its project'],
    [{ kind: 'lock-wait', project: '..', settings: { seconds: 1 } }, 'Project name'],
    [{ kind: 'lock-wait', tag: { name: ' ', value: '' }, settings: { seconds: 1 } }, 'Tag name'],
    [{ kind: 'freeze', settings: {}, note: 'a\nb' }, 'one line'],
    [{ kind: 'freeze', settings: {}, note: 'x'.repeat(501) }, 'one line'],
  ])('%j is not', (written, message) => {
    expect(() => parseRule(written)).toThrow(message);
  });

  test('has a slot of its own where each rule counts, and otherwise one for each kind', () => {
    const slot = (kind: string, settings: object): string => parseRule({ kind, settings }).slot;
    expect(slot('freeze', {})).not.toBe(slot('freeze', {}));
    expect(slot('lock-wait', { seconds: 1 })).toBe(slot('lock-wait', { seconds: 2 }));
    expect(slot('concurrency', { most: 1 })).toBe(slot('concurrency', { most: 2, per: 'all' }));
    expect(slot('concurrency', { most: 1 })).not.toBe(slot('concurrency', { most: 1, per: 'user' }));
  });
});

describe('rules that are read', () => {
  const rule = { id: 'a', project: null, stack: null, tag: null, note: '' };
  const read = (...rules: object[]) =>
    UpdateRules.read(JSON.stringify({ now: 1000, rules: rules.map((each) => ({ ...rule, ...each })) }));

  test('keep their order', () => {
    const rules = read(
      { kind: 'lock-wait', settings: { seconds: 1 } },
      { kind: 'freeze', settings: {} },
      { kind: 'lock-wait', settings: { seconds: 2 } },
    );
    expect(rules.first('lock-wait')?.settings.seconds).toBe(1);
    expect(rules.all('lock-wait')).toHaveLength(2);
    expect(rules.first('supersede')).toBeNull();
    expect(rules.now.getTime()).toBe(1000);
    expect(UpdateRules.read(null).isEmpty).toBe(true);
  });

  test('of later releases are ignored, but not if their kind is known', () => {
    expect(read({ kind: 'later', settings: 7 }).isEmpty).toBe(true);
    expect(() => read({ kind: 'freeze', settings: { mode: 'later' } })).toThrow('cannot be understood');
  });
});
