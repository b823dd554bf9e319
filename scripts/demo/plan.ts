import type { DemoProgram, DemoStack } from './programs/program.ts';
import { programs } from './programs/programs.ts';
import { Choices } from './resources.ts';
import type { DemoRun } from './runs.ts';

export interface Person {
  readonly login: string;
  readonly role: 'admin' | 'member' | 'viewer';
}

export interface DemoOrganization {
  readonly name: string;
  readonly people: readonly Person[];
}

/** A stack and its history: who ran which update, and how many days ago. */
export interface StackPlan {
  readonly stack: DemoStack;
  readonly program: DemoProgram;
  readonly runs: readonly { readonly run: DemoRun; readonly by: string; readonly daysAgo: number }[];
}

const organizationNames = [
  'acme',
  'northwind',
  'globex',
  'initech',
  'umbrella',
  'hooli',
  'stark',
  'wayne',
  'tyrell',
  'cyberdyne',
  'aperture',
  'wonka',
  'soylent',
  'massive',
  'oscorp',
  'vandelay',
  'dunder',
  'pied-piper',
  'monarch',
  'octan',
];
const logins = ['ada', 'grace', 'alan', 'barbara', 'ken', 'margaret', 'linus', 'radia', 'edsger', 'frances'];
const serviceNames = [
  'accounts',
  'address',
  'billing',
  'booking',
  'campaigns',
  'coupons',
  'delivery',
  'email',
  'fraud',
  'geo',
  'invoices',
  'images',
  'ledger',
  'loyalty',
  'mailer',
  'media',
  'metrics',
  'notify',
  'offers',
  'orders',
  'partners',
  'payments',
  'prices',
  'profile',
  'quota',
  'ratings',
  'refunds',
  'reports',
  'returns',
  'reviews',
  'search',
  'sessions',
  'shipping',
  'stock',
  'support',
  'tax',
  'tickets',
  'tracking',
  'users',
  'wishlist',
];
const messages = [
  'Raise the limits of the web tasks',
  'Renew the certificates',
  'Upgrade Postgres',
  'Add an alarm for slow answers',
  'Use the new base image',
  'Split the cart from the shop',
  'Scale down over night',
  'Roll out the release',
  'Tag everything with its owner',
  'Fix the health check',
  'Allow traffic from the office',
  'Merge pull request #%n from acme/%b',
  'Move the jobs to their own account',
  'Rotate the keys',
  'Remove what nobody uses',
];
const branches = ['main', 'main', 'main', 'release', 'feature/search', 'fix/timeouts', 'renovate/all'];

/** The organizations. The first one has examples of everything; all `people` are members of each. */
export function organizations(): DemoOrganization[] {
  return organizationNames.map((name, index) => {
    const choices = new Choices(name);
    const others = logins.slice(1).filter(() => index === 0 || choices.happens(0.4));
    const roles = others.map((login, at): Person => ({ login, role: at % 5 === 4 ? 'viewer' : 'member' }));
    return { name, people: [{ login: 'ada', role: 'admin' }, ...roles] };
  });
}

/** Plans `count` stacks over all organizations, and at least the stacks of the first one that the rest of the demo uses. */
export function planStacks(list: readonly DemoOrganization[], count: number): StackPlan[] {
  const plans: StackPlan[] = [];
  const large = [programs.storefront, programs.cluster, programs.analytics, programs.site];
  const add = (organization: DemoOrganization, program: DemoProgram, project: string, stack: string): void => {
    if (plans.length >= count && !(organization === list[0] && large.includes(program))) return;
    const scale = stack.startsWith('prod') ? 3 : stack === 'staging' ? 2 : 1;
    const region = stack.endsWith('-us') ? 'us-east-1' : 'eu-west-1';
    const place = { organization: organization.name, project, stack, scale, region };
    const isMain = organization === list[0] && project === program.project;
    plans.push({ stack: place, program, runs: historyOf(place, organization, isMain ? 12 : 1) });
  };
  const [main, ...others] = list;
  for (const organization of main ? [main, ...others] : [])
    for (const program of large)
      for (const stack of ['prod', 'staging', 'dev', 'prod-us'].slice(0, organization === main ? 4 : 2))
        add(organization, program, program.project, stack);
  for (const name of serviceNames)
    for (const organization of list)
      for (const stack of ['prod', 'dev']) add(organization, programs.service, name, stack);
  return plans;
}

/** `length` is the approximate minimum number of runs. */
function historyOf(stack: DemoStack, organization: DemoOrganization, length: number): StackPlan['runs'] {
  const choices = new Choices(`history of ${stack.organization}/${stack.project}/${stack.stack}`);
  const runs: { run: DemoRun; by: string; daysAgo: number }[] = [];
  const count = length + choices.between(0, length > 1 ? 8 : 2);
  const authors = organization.people.filter(({ role }) => role !== 'viewer');
  let daysAgo = choices.between(20, 80);
  for (let edition = 1; edition <= count; edition++) {
    const by = choices.of(authors).login;
    const failure = edition > 1 && choices.happens(0.12) ? choices.fraction() : null;
    const usual = {
      edition,
      failure: null,
      message: messageOf(choices),
      environment: environmentOf(choices, stack, by),
      seconds: choices.between(12, 400),
    };
    daysAgo = daysAgo * (0.55 + 0.4 * choices.fraction());
    if (choices.happens(0.3)) runs.push({ run: { ...usual, kind: 'preview' }, by, daysAgo: daysAgo + 0.02 });
    runs.push({ run: { ...usual, kind: 'update', failure }, by, daysAgo });
    if (choices.happens(0.1))
      runs.push({ run: { ...usual, kind: 'refresh', message: 'Nightly refresh' }, by, daysAgo: daysAgo * 0.98 });
  }
  if (choices.happens(0.03)) {
    const last = runs.at(-1) as (typeof runs)[number];
    runs.push({
      run: { ...last.run, kind: 'destroy', failure: null, message: 'Not needed any more' },
      by: 'ada',
      daysAgo: daysAgo * 0.9,
    });
  }
  return runs;
}

function messageOf(choices: Choices): string {
  return choices
    .of(messages)
    .replace('%n', String(choices.between(100, 2_400)))
    .replace('%b', choices.of(branches.slice(3)));
}

/** The environment that a run in CI, or from a user's computer, reports. */
export function environmentOf(
  choices: Choices,
  { organization, project }: DemoStack,
  login: string,
): Record<string, string> {
  const commit = choices.hex(40);
  const branch = choices.of(branches);
  const run = choices.between(1_000_000, 9_000_000);
  const git = {
    'git.head': commit,
    'git.headName': `refs/heads/${branch}`,
    'git.dirty': 'false',
    'git.author': login,
    'git.author.email': `${login}@${organization}.example`,
    'git.committer': login,
    'git.committer.email': `${login}@${organization}.example`,
    'vcs.kind': 'github.com',
    'vcs.owner': organization,
    'vcs.repo': project,
    'pulumi.version': 'v3.255.0',
    'pulumi.arch': 'amd64',
    'pulumi.os': 'linux',
    'exec.kind': 'cli',
  };
  if (choices.happens(0.15)) return git;
  return {
    ...git,
    'ci.system': 'GitHub Actions',
    'ci.build.id': String(run),
    'ci.build.number': String(run % 4_000),
    'ci.build.type': branch === 'main' ? 'push' : 'pull_request',
    'ci.build.url': `https://github.com/${organization}/${project}/actions/runs/${run}`,
  };
}
