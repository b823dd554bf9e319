import { describe, expect, test } from '@jest/globals';
import { UpdateRules } from '../../../shared/updates/rules/update-rules.ts';
import { SupersededError, supersedeProblem, waitingRun } from './superseding.ts';

const environment = {
  'git.head': 'aaa',
  'git.headName': 'refs/heads/main',
  'vcs.owner': 'acme',
  'vcs.repo': 'web',
  'ci.system': 'GitHub',
  'ci.build.number': '7',
  'ci.build.url': 'https://ci.example/7',
  'ci.pr.number': '12',
  'ci.pr.headSHA': 'bbb',
};
const rulesFor = (by: 'branch' | 'pull-request' | 'nothing') =>
  new UpdateRules(
    [{ id: 'r', kind: 'supersede', project: null, stack: null, tag: null, settings: { by }, note: '' }],
    new Date(),
  );
const of = (tags: Record<string, string>, rules = UpdateRules.none, changes: object = {}, kind = 'update') =>
  waitingRun(tags, rules, kind, { ...environment, ...changes });

describe('what may be superseded', () => {
  test('is said by the tag, otherwise by rules', () => {
    expect(of({})).toBeNull();
    expect(of({ supersede: 'branch' })?.commit).toBe('aaa');
    expect(of({ supersede: 'pull-request' })?.commit).toBe('bbb');
    expect(of({}, rulesFor('pull-request'))?.commit).toBe('bbb');
    expect(of({ supersede: 'nothing' }, rulesFor('branch'))).toBeNull();
    expect(of({ supersede: 'branch' }, rulesFor('nothing'))).not.toBeNull();
  });

  test('is one branch or pull request of one repository, and one kind of update', () => {
    const series = (changes: object, kind = 'update') => of({ supersede: 'branch' }, undefined, changes, kind)?.series;
    expect(series({ 'ci.build.number': '8', 'git.head': 'c' })).toBe(series({}));
    for (const changes of [{ 'git.headName': 'refs/heads/other' }, { 'vcs.repo': 'api' }, { 'vcs.owner': undefined }])
      expect(series(changes)).not.toBe(series({}));
    expect(series({}, 'destroy')).not.toBe(series({}));
    expect(of({ supersede: 'pull-request' })?.series).not.toBe(series({ 'git.headName': '12' }));
  });

  test.each([
    { 'git.head': undefined },
    { 'git.headName': 'HEAD' },
    { 'git.headName': '' },
    { 'git.headName': 7 },
    { 'git.head': 'a\u0000' },
  ])('is nothing with %j', (changes) => {
    expect(of({ supersede: 'branch' }, undefined, changes)).toBeNull();
  });

  test('is compared by numbers of builds only if there are any', () => {
    expect(of({ supersede: 'branch' })).toMatchObject({ build: 7, builds: '["GitHub",null]' });
    for (const build of ['', 'x', '1.5', undefined])
      expect(of({ supersede: 'branch' }, undefined, { 'ci.build.number': build })).toMatchObject({
        build: null,
        builds: null,
      });
  });
});

test('the message names the commit and its run', () => {
  expect(new SupersededError({ commit: 'abc', url: 'https://ci.example/8' }).message).toMatch(
    /^Superseded by commit abc \(https:\/\/ci\.example\/8\), which also waits .*`pulumi cancel` does not help$/,
  );
  expect(new SupersededError({ commit: 'abc', url: 'file:/x' }).message).toMatch(/^Superseded by commit abc, which/);
});

test('the tag must have a meaning', () => {
  for (const mode of ['branch', 'pull-request', 'nothing', undefined]) expect(supersedeProblem(mode)).toBeNull();
  expect(supersedeProblem('all')).toMatch('must be one of branch, pull-request, nothing');
});
