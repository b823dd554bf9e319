/** The CLI would read the configuration through endpoints that this server lacks, so every update would fail. */
export const noRemoteConfig =
  'this server keeps no configuration of stacks. Put it in Pulumi.<stack>.yaml and omit --remote-config';

interface Product {
  readonly paths: RegExp;
  readonly message: string;
}

const stack = '/api/stacks/[^/]+/[^/]+/[^/]+';

const product = (paths: string, message: string): Product => ({ paths: new RegExp(`^(?:${paths})(?:/|$)`), message });

const notProvided = (name: string, hint: string): string =>
  `${name} another product of Pulumi, which this server does not provide. ${hint}`;

/** Paths that the CLI calls for other products, and what to do without them. */
const products: readonly Product[] = [
  product(
    '/api/(?:esc|preview/environments|change-requests)',
    notProvided(
      'Pulumi ESC (environments) is',
      'Remove `environment` from Pulumi.<stack>.yaml and keep its values as `pulumi config`, or read them in the program.',
    ),
  ),
  product(
    `${stack}/deployments|/api/preview/[^/]+/[^/]+/[^/]+/deployments|/api/orgs/[^/]+/(?:deployments|agent-?[pP]ools)|/api/console/orgs/[^/]+/integrations`,
    notProvided(
      'Pulumi Deployments (remote updates, their settings and schedules) is',
      'Run `pulumi` without --remote, from your own CI.',
    ),
  ),
  product(
    '/api/agents/signup',
    notProvided(
      'Agent sign-up is',
      'An administrator creates users and tokens with `holdfast admin`; then set PULUMI_ACCESS_TOKEN.',
    ),
  ),
  product('/api/(?:ai|preview/agents)', notProvided('Pulumi Neo (Copilot) is', 'The other commands do not need it.')),
  product('/api/preview/insights', notProvided('Pulumi Insights is', '`pulumi stack` shows the resources of a stack.')),
  product(
    '/api/orgs/[^/]+/policyresults',
    notProvided(
      'The record of policy issues is',
      'Required policy packs (`pulumi policy enable`) stop an update and are shown in its events.',
    ),
  ),
  product(
    '/api/orgs/[^/]+/search/resources/parse',
    'This server does not support natural-language search. Use the query syntax: `pulumi org search --query TERM`.',
  ),
  product(
    '/api/orgs/[^/]+/resources',
    'This server does not count the resources of an organization over time. `pulumi org search` finds the resources of all stacks.',
  ),
  product(
    '/api/orgs/[^/]+/templates?',
    'This server has no templates of its own. Use the URL of one, e.g. of a Git repository.',
  ),
  product(
    '/api/(?:preview/)?registry/(?:packages|templates)/[^/]+/[^/]+/[^/]+/versions',
    'This server has no registry of packages and templates. Use their URLs, e.g. of a Git repository.',
  ),
  product(
    '/api/orgs/[^/]+/teams/github',
    'This server does not import teams from GitHub. Create a team here (`POST /api/orgs/ORG/teams/pulumi`).',
  ),
  product('/api/log-encryption-session', notProvided('Log sharing is', 'The CLI keeps its logs on your machine.')),
  product(`${stack}/config`, `Nothing was changed: ${noRemoteConfig}.`),
];

/**
 * Returns the error message for a call to another product, or null for all other paths. Depends on the format of the path alone, so
 * it reveals nothing about what exists here.
 */
export function otherProduct(path: string): string | null {
  return products.find(({ paths }) => paths.test(path))?.message ?? null;
}
