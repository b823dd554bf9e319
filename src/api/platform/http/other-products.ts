/** The CLI would read the configuration through endpoints that this server lacks, so every update would fail. */
export const noRemoteConfig =
  'this server keeps no configuration of stacks. Put it in Pulumi.<stack>.yaml and omit --remote-config';

/** The CLI would create the stack without the environment, and then ask for its removal. */
export const noEnvironments = 'this server has no Pulumi ESC. Omit --esc-config';

interface Product {
  readonly paths: RegExp;
  readonly message: string;
}

const stack = '/api/stacks/[^/]+/[^/]+/[^/]+';

/** `isWhole`: does not match the paths below. */
const product = (paths: string, message: string, isWhole = false): Product => ({
  paths: new RegExp(`^(?:${paths})${isWhole ? '$' : '(?:/|$)'}`),
  message,
});

const notProvided = (name: string, hint: string): string =>
  `${name} another product of Pulumi, which this server does not provide. ${hint}`;

/** Paths that the CLI calls for other products, or for features that this server provides differently. */
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
  product(
    '/api/(?:ai|preview/agents)|/api/orgs/[^/]+/neo',
    notProvided('Pulumi Neo (Copilot) is', 'The other commands do not need it.'),
  ),
  product('/api/orgs/[^/]+/services', notProvided('The catalog of services is', 'Tags group stacks.')),
  product(
    '/api/orgs/[^/]+/saml',
    'This server has no SAML. An operator sets up sign-in by OpenID Connect, for all organizations.',
  ),
  product(
    '/api/user/organizations/[^/]+/default',
    'This server keeps no default organization. The CLI does: `pulumi org set-default ORG`.',
  ),
  product(
    '/api/orgs/[^/]+/auditlogs/export/config',
    'This server does not send the audit log to a bucket. GET /api/orgs/ORG/auditlogs/export exports it.',
  ),
  product('/api/preview/insights', notProvided('Pulumi Insights is', '`pulumi stack` shows the resources of a stack.')),
  product(
    '/api/orgs/[^/]+/(?:policyresults|policy/exceptions)',
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
    '/api/change-gates',
    notProvided(
      'The approval of changes to ESC environments is',
      'Rules of this server limit what updates of stacks change without an approval: POST /api/orgs/ORG/update-rules.',
    ),
  ),
  product(
    '/api/orgs/[^/]+/teams/github',
    'This server does not import teams from GitHub. Create a team here (`POST /api/orgs/ORG/teams/pulumi`).',
  ),
  product('/api/log-encryption-session', notProvided('Log sharing is', 'The CLI keeps its logs on your machine.')),
  product(
    `/api/orgs/[^/]+/policygroups/[^/]+/(?:stacks|accounts)|/api/orgs/[^/]+/registry/policypacks|/api/registry/policypacks|${stack}/policygroups`,
    'This server does not have this call about policies. The page Policies of the organization shows policy packs and groups, and changes them.',
  ),
  product(`${stack}/outputs`, 'This server does not announce stack-outputs. Outputs are in the exported state.'),
  product(
    `${stack}/(?:logs|updates/(?!latest(?:/|$))[^/]+|[^/]+/[^/]+/events)`,
    'This server has neither logs of resources nor the files of programs, and takes events in batches only.',
  ),
  product(
    '/api/stacks/[^/]+',
    'Stacks are created and listed elsewhere: POST /api/stacks/ORG/PROJECT, GET /api/user/stacks?organization=ORG.',
    true,
  ),
  product(`${stack}/config`, `Nothing was changed: ${noRemoteConfig}.`),
];

/** The message for a call to another product. Depends on the format of the path alone, so it reveals nothing about what exists here. */
export function otherProduct(path: string): string | null {
  return products.find(({ paths }) => paths.test(path))?.message ?? null;
}
