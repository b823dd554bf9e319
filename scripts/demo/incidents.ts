import { type RawClient, ResponseError } from '../../bench/support/raw-client.ts';
import { until } from '../../testkit/until.ts';
import type { Calls } from './calls.ts';
import { environmentOf, type StackPlan } from './plan.ts';
import { Choices } from './resources.ts';
import { type DemoRun, StackPlayer } from './runs.ts';
import type { Moment } from './times.ts';

/** With their players, by project and stack. */
export interface Incidents {
  readonly organization: string;
  readonly clientOf: (login: string) => RawClient;
  readonly callsOf: (login: string) => Calls;
  readonly played: ReadonlyMap<string, { readonly plan: StackPlan; readonly player: StackPlayer }>;
  readonly url: string;
  /** The intended times of updates, in order; each incident adds its own. */
  readonly moments: Moment[];
}

const choices = new Choices('incidents');

/** Events that ordinary updates do not show: refusals, drift, an interrupted run, approvals, and a deleted stack. */
export async function seedIncidents(incidents: Incidents): Promise<void> {
  for (const name of ['storefront/prod', 'storefront/dev', 'cluster/prod', 'cluster/staging', 'analytics/prod'])
    await refuseOthers(incidents, name);
  await supersede(incidents, 'cluster/prod');
  for (const by of ['ken', 'linus', 'grace']) await runRefused(incidents, 'storefront/prod-us', by);
  for (const [name, by] of [
    ['analytics/prod', 'edsger'],
    ['cluster/staging', 'barbara'],
  ] as const)
    await runAs(incidents, name, by, { kind: 'refresh', message: 'Look for drift', findsDrift: true });
  await cutOff(incidents, 'cluster/dev', 'linus');
  await askForApprovals(incidents);
  await deleteStack(incidents, 'analytics/dev', 'scratch');
}

/** Dates the updates of all incidents to the last half hour, after all others. */
function note({ moments }: Incidents, updateId: string): void {
  const endedMs = Date.now() - (30 - moments.length) * 60_000;
  moments.push({ updateId, beganMs: endedMs - 60_000 - choices.between(0, 90) * 1000, endedMs });
}

async function runAs(
  incidents: Incidents,
  name: string,
  by: string,
  rest: Pick<DemoRun, 'kind' | 'message'> & Partial<DemoRun>,
): Promise<void> {
  const found = incidents.played.get(name);
  if (!found) return;
  note(incidents, await found.player.play(runOf(found.plan, by, rest), incidents.clientOf(by), Date.now() - 60_000));
}

function runOf({ runs, stack }: StackPlan, by: string, rest: Partial<DemoRun> = {}): DemoRun {
  const edition = Math.max(1, ...runs.map(({ run }) => run.edition)) + 1;
  const usual = { kind: 'update', edition, failure: null, message: 'Merge the release', seconds: 60 } as const;
  return { ...usual, environment: environmentOf(choices, stack, by), ...rest };
}

/** A run fails because a rule or another run is in its way. */
async function runRefused({ clientOf, played }: Incidents, name: string, by: string): Promise<void> {
  const found = played.get(name);
  if (!found) return;
  try {
    await (await found.player.begin(runOf(found.plan, by), clientOf(by))).cancel();
  } catch (error) {
    if (!(error instanceof ResponseError) || error.status !== 409) throw error;
  }
}

/** Others try the same and do not wait. */
async function refuseOthers(incidents: Incidents, name: string): Promise<void> {
  const { callsOf, clientOf, organization, played } = incidents;
  const found = played.get(name);
  if (!found) return;
  const [project = '', stack = ''] = name.split('/');
  const rule = { organization, project, stack, kind: 'lock-wait', settings: { seconds: 0 } };
  const { id } = await callsOf('ada').rules.set.mutate(rule);
  const live = await found.player.begin(runOf(found.plan, 'ada'), clientOf('ada'));
  for (const by of ['grace', 'alan', 'barbara', 'ken'].slice(0, choices.between(1, 4)))
    await runRefused(incidents, name, by);
  await live.send(live.timeline.map((event) => ({ ...event, atMs: Date.now() - 60_000 + event.atMs })));
  await live.end();
  note(incidents, live.id);
  await callsOf('ada').rules.remove.mutate({ organization, ruleId: id });
}

/** Two runs of a branch wait; the run of the older commit is superseded. */
async function supersede(incidents: Incidents, name: string): Promise<void> {
  const { callsOf, clientOf, organization, played } = incidents;
  const found = played.get(name);
  if (!found) return;
  const [project = '', stack = ''] = name.split('/');
  const waiting = async (): Promise<number> => {
    const { items } = await callsOf('ada').queue.list.query({ organization, project, stack });
    return items.length - 1;
  };
  const ciOf = (by: string, build: number) => ({
    ...environmentOf(choices, found.plan.stack, by),
    ...{ 'git.headName': 'refs/heads/main', 'ci.system': 'GitHub Actions', 'ci.build.number': String(build) },
  });
  const live = await found.player.begin(runOf(found.plan, 'ada'), clientOf('ada'));
  const older = found.player.begin(runOf(found.plan, 'ken', { environment: ciOf('ken', 812) }), clientOf('ken'));
  const gone = older.then(
    (run) => run.cancel(),
    () => {},
  );
  await until(async () => (await waiting()) >= 1, 'a run waits', { everyMs: 100 });
  const newer = found.player.begin(runOf(found.plan, 'radia', { environment: ciOf('radia', 815) }), clientOf('radia'));
  await gone;
  await live.end();
  note(incidents, live.id);
  const last = await newer;
  await last.end();
  note(incidents, last.id);
}

/** The machine of the pipeline dies. */
async function cutOff(incidents: Incidents, name: string, by: string): Promise<void> {
  const found = incidents.played.get(name);
  if (!found) return;
  const run = { message: 'Upgrade the ingress' };
  const operations = ['creating', 'updating'] as const;
  note(incidents, await found.player.interrupt(runOf(found.plan, by, run), incidents.clientOf(by), operations));
}

async function askForApprovals({ callsOf, organization }: Incidents): Promise<void> {
  const asked = [
    { by: 'grace', project: 'storefront', stack: 'prod', reason: 'Replaces the orders database: Postgres 18' },
    { by: 'radia', project: 'cluster', stack: 'prod', reason: 'Removes the old node groups' },
    { by: 'barbara', project: 'cluster', stack: 'staging', reason: 'Deletes 12 of 40 resources' },
  ] as const;
  const made = [];
  for (const { by, ...rest } of asked) {
    const approval = { organization, commit: choices.hex(40), ...rest };
    made.push({ ...approval, ...(await callsOf(by).approvals.ask.mutate(approval)) });
  }
  const last = made.at(-1);
  if (last)
    await callsOf('ada').approvals.give.mutate({
      ...{ organization, project: last.project, stack: last.stack },
      ...{ approvalId: last.id, reason: 'Looked at the preview', minutes: 1_440 },
    });
}

async function deleteStack(
  { clientOf, organization, played, url }: Incidents,
  like: string,
  stack: string,
): Promise<void> {
  const found = played.get(like);
  if (!found) return;
  const { program } = found.plan;
  const ref = { ...found.plan.stack, stack };
  const player = new StackPlayer(clientOf('ada'), url, program, ref);
  await player.create();
  const run = { kind: 'update', edition: 1, failure: null, message: 'Try the new tables', seconds: 60 } as const;
  await player.play(
    { ...run, environment: environmentOf(choices, ref, 'frances') },
    clientOf('ada'),
    Date.now() - 60_000,
  );
  // Refused until other states are indexed, because they may read its outputs.
  const remove = (): Promise<boolean> =>
    clientOf('ada')
      .once('DELETE', `/api/stacks/${organization}/${ref.project}/${stack}?force=true`)
      .then(
        () => true,
        (error: unknown) => {
          if (error instanceof ResponseError && error.status === 409) return false;
          throw error;
        },
      );
  await until(remove, 'the stack is deleted', { timeoutMs: 600_000, everyMs: 1_000 });
}
