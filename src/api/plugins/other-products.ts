import { noRemoteConfig } from '../stacks/create-request.ts';

interface Product {
  readonly paths: RegExp;
  readonly message: string;
}

const stack = '/api/stacks/[^/]+/[^/]+/[^/]+';

const product = (paths: string, message: string): Product => ({ paths: new RegExp(`^(?:${paths})(?:/|$)`), message });

const notHere = (name: string, hint: string): string =>
  `${name} another product of Pulumi, which this server does not have. ${hint}`;

/** What the CLI asks of a service for other products, and what to do without them. */
const products: readonly Product[] = [
  product(
    '/api/(?:esc|preview/environments)',
    notHere(
      'Pulumi ESC (environments) is',
      'Take `environment` out of Pulumi.<stack>.yaml and keep its values as `pulumi config`, or read them in the program.',
    ),
  ),
  product(
    `${stack}/deployments|/api/preview/[^/]+/[^/]+/[^/]+/deployments|/api/orgs/[^/]+/(?:deployments|agent-?[pP]ools)`,
    notHere(
      'Pulumi Deployments (remote updates, their settings and schedules) is',
      'Run `pulumi` without --remote, from your own CI.',
    ),
  ),
  product(
    '/api/agents/signup',
    notHere(
      'The sign-up of agents is',
      'An administrator makes users and tokens with `holdfast admin`; then set PULUMI_ACCESS_TOKEN.',
    ),
  ),
  product('/api/(?:ai|preview/agents)', notHere('Pulumi Neo (Copilot) is', 'The other commands need nothing of it.')),
  product('/api/preview/insights', notHere('Pulumi Insights is', '`pulumi stack` shows the resources of a stack.')),
  product(
    '/api/orgs/[^/]+/policyresults',
    notHere('The record of policy issues is', 'Run policy packs with `pulumi up --policy-pack`.'),
  ),
  product(
    '/api/registry/(?:packages|templates)/[^/]+/[^/]+/[^/]+/versions',
    'This server has no registry of packages and templates. Name them by a URL, e.g. of a Git repository.',
  ),
  product('/api/log-encryption-session', notHere('The sharing of logs is', 'The CLI keeps its logs on your machine.')),
  product(`${stack}/config`, `Nothing was changed: ${noRemoteConfig}.`),
];

/**
 * The answer to a call for another product; null for all other paths. By the shape of the path alone, so that it says nothing about
 * what exists here.
 */
export function otherProduct(path: string): string | null {
  return products.find(({ paths }) => paths.test(path))?.message ?? null;
}
