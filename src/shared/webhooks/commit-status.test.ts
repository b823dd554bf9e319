import { describe, expect, test } from '@jest/globals';
import { isAlreadySet, statusRequestOf } from './commit-status.ts';
import type { EventFacts, EventOrigin } from './event-facts.ts';

const commit = 'a'.repeat(40);
type Update = NonNullable<EventFacts['update']>;

function facts(
  origin: Partial<EventOrigin> = {},
  update: Partial<Update> = {},
  event = 'update_succeeded',
): EventFacts {
  const all = {
    commit,
    branch: 'main',
    pullRequestHead: '',
    pullRequest: '',
    host: 'github.com',
    owner: 'acme',
    repository: 'web',
  };
  return {
    ...{
      event,
      occurredAt: '2026-01-01T00:00:00.000Z',
      organization: 'acme',
      project: 'site',
      stack: 'prod',
      login: 'ada',
      details: {},
    },
    update: {
      ...{ id: 'u', kind: 'update', isPreview: false, result: 'succeeded', version: 3, message: '' },
      ...{ resourceChanges: { create: 2, same: 5 }, startedAt: null, endedAt: null, unusual: [] },
      origin: { ...all, ciSystem: '', ciUrl: 'https://ci.example/1', ...origin },
      ...update,
    },
  };
}
const github = (notified: EventFacts, base = 'https://api.github.com') =>
  statusRequestOf('github_status', base, 'secret', notified);
const gitlab = (notified: EventFacts, base = 'https://gitlab.com') =>
  statusRequestOf('gitlab_status', base, 'secret', notified);
const bodyOf = (request: ReturnType<typeof github>) => ('body' in request ? JSON.parse(request.body) : request);

describe('the status of a commit', () => {
  test('on GitHub', () => {
    const request = github(facts());
    expect(request).toMatchObject({
      url: `https://api.github.com/repos/acme/web/statuses/${commit}`,
      headers: { authorization: 'Bearer secret' },
    });
    expect(bodyOf(request)).toEqual({
      state: 'success',
      context: 'pulumi/site/prod',
      description: 'update succeeded (2 create)',
      target_url: 'https://ci.example/1',
    });
  });

  test('on GitLab, in a subgroup, of a preview that has begun', () => {
    const begun = facts(
      { host: 'gitlab.com', owner: 'acme/infra' },
      { isPreview: true, result: null, resourceChanges: {} },
      'preview_started',
    );
    const request = gitlab(begun);
    expect(request).toMatchObject({
      url: `https://gitlab.com/api/v4/projects/acme%2Finfra%2Fweb/statuses/${commit}`,
      headers: { 'private-token': 'secret' },
    });
    expect(bodyOf(request)).toMatchObject({ state: 'running', name: 'pulumi/site/prod (preview)' });
  });

  test.each([
    ['failed', 'failure', 'failed'],
    ['cancelled', 'error', 'canceled'],
    ['unknown', 'error', 'failed'],
  ])('of an update that ended as %s', (result, onGithub, onGitlab) => {
    expect(bodyOf(github(facts({}, { result }))).state).toBe(onGithub);
    expect(bodyOf(gitlab(facts({ host: 'gitlab.com' }, { result }))).state).toBe(onGitlab);
  });

  test('is set on the newest commit of a pull request, not on the merge that CI has checked out', () => {
    const head = 'b'.repeat(40);
    expect(github(facts({ pullRequestHead: head }))).toMatchObject({
      url: expect.stringContaining(`/statuses/${head}`),
    });
  });

  test.each([
    ['another host', { host: 'gitlab.com' }],
    ['no host', { host: '' }],
    ['no commit', { commit: '' }],
    ['something that is no commit', { commit: '../../../user' }],
    ['an owner that is a path', { owner: '..' }],
    ['a repository that is a path', { repository: 'web/../../other' }],
    ['a repository with a query', { repository: 'web?x=1' }],
    ['a group, which GitHub does not have', { owner: 'acme/infra' }],
  ])('is left out with %s', (_, origin) => expect(github(facts(origin))).toHaveProperty('leftOut'));

  test('is left out for other events', () => {
    expect(github({ ...facts(), update: null })).toHaveProperty('leftOut');
    expect(github(facts({}, {}, 'drift_detected'))).toHaveProperty('leftOut');
  });

  test('on an own host', () => {
    const own = github(facts({ host: 'git.acme.example:8443' }), 'https://git.acme.example/api/v3/');
    expect(own).toMatchObject({ url: `https://git.acme.example/api/v3/repos/acme/web/statuses/${commit}` });
    const lab = gitlab(facts({ host: 'git.acme.example' }), 'https://git.acme.example/api/v4');
    expect(lab).toMatchObject({ url: expect.stringMatching(/example\/api\/v4\/projects\/acme%2Fweb/) });
  });

  test('that GitLab has already counts as set', () => {
    expect(isAlreadySet('gitlab_status', 400, '{"message":"Cannot transition status via :run from :running"}')).toBe(
      true,
    );
    expect(isAlreadySet('gitlab_status', 400, '{"message":"bad"}')).toBe(false);
    expect(isAlreadySet('github_status', 400, 'Cannot transition status')).toBe(false);
  });
});
