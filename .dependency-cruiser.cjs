const { Compiler } = require('@swc/core');
const { Visitor } = require('@swc/core/Visitor.js');

// dependency-cruiser parses all files as TypeScript without JSX.
const { parseFileSync } = Compiler.prototype;
Compiler.prototype.parseFileSync = function (file, options) {
  return parseFileSync.call(this, file, { ...options, tsx: file.endsWith('.tsx') });
};

// The visitor that dependency-cruiser uses for TypeScript does not support `using` declarations.
const { visitStatement } = Visitor.prototype;
Visitor.prototype.visitStatement = function (statement) {
  if (statement.type !== 'UsingDeclaration') return visitStatement.call(this, statement);
  statement.decls = this.visitVariableDeclarators(statement.decls);
  return statement;
};

/**
 * Boundaries inside the code base. If you need an exception, change the layout, not this file.
 *
 * @type {import('dependency-cruiser').IConfiguration}
 */
const bytesOnly = [
  '^src/shared/state/deployments/',
  '^src/shared/state/checkpoints/(deployment-scanner|document-cut)\\.ts$',
  '^src/shared/state/journal/replay/rules/',
];
/** Code that handles requests: routes and procedures, and what of the platform does. */
const routes = '^src/api/(.+\\.(routes|trpc)\\.ts$|platform/http/|identity/plugins/)';
const entry = '^src/main\\.ts$';
const test = '\\.test\\.ts$';

/** Allows imports of a package from these places only. */
const onlyIn = (name, packages, places) => ({
  name,
  severity: 'error',
  from: { path: '^src/', pathNot: [...places, test] },
  to: { path: `^node_modules/(${packages})(/|$)` },
});

/**
 * The domains of each part of the program, and the folders of the state, lower ones first. A domain imports lower ones only, so there is no circle. Files directly in
 * the folder of a part put it together and may import all domains.
 */
const domains = {
  shared:
    'platform audit stacks access drift secrets updates identity state events jobs policies search statistics webhooks backup blob-moves diy bundle',
  api: 'platform access audit drift policies search updates state events secrets stacks identity operator statistics embeds webhooks',
  workers: 'platform access audit backup bundle drift events identity policies search stacks state statistics updates webhooks',
  web: 'platform access audit drift identity policies search secrets updates operator state statistics embeds webhooks stacks',
  'shared/state': 'deployments edits checkpoints journal retention blobs',
};
const domainRules = Object.entries(domains).flatMap(([part, names]) =>
  names.split(' ').map((domain, at, all) => ({
    name: `${part.replace('/', '-')}-${domain}-imports-lower-domains`,
    severity: 'error',
    from: { path: `^src/${part}/${domain}/`, pathNot: test },
    to: { path: `^src/${part}/`, pathNot: all.slice(0, at + 1).map((lower) => `^src/${part}/${lower}/`) },
  })),
);

module.exports = {
  forbidden: [
    {
      name: 'api-not-to-workers',
      comment: 'The roles are deployed separately; only the composition root combines them.',
      severity: 'error',
      from: { path: '^src/api/' },
      to: { path: '^src/workers/' },
    },
    {
      name: 'workers-not-to-api',
      severity: 'error',
      from: { path: '^src/workers/' },
      to: { path: '^src/api/' },
    },
    {
      name: 'roles-joined-at-the-root-only',
      comment: 'src/server.ts combines the roles in one process; the command line only starts them.',
      severity: 'error',
      from: { path: '^src/(cli/|[^/]+\\.ts$)', pathNot: '^src/server\\.ts$' },
      to: { path: '^src/(api|workers)/', pathNot: '^src/(api|workers)/main\\.ts$' },
    },
    {
      name: 'web-takes-types-only',
      comment: 'The web UI runs in browsers: from the server it takes the type of its procedures, and nothing else.',
      severity: 'error',
      from: { path: '^src/web/' },
      to: { path: '^src/(?!web/)', pathNot: '^src/api/router\\.ts$' },
    },
    {
      name: 'web-parts-know-no-page',
      comment: 'What the web UI is built of; pages give it what it shows.',
      severity: 'error',
      from: { path: '^src/web/platform/ui/' },
      to: { path: '^src/web/(?!platform/ui/)' },
    },
    {
      name: 'server-not-to-web',
      severity: 'error',
      from: { path: '^(src/(?!web/)|bin/)' },
      to: { path: '^src/web/' },
    },
    {
      name: 'shared-knows-no-role',
      severity: 'error',
      from: { path: '^src/shared/' },
      to: { path: '^src/(?!shared/)' },
    },
    ...domainRules,
    {
      name: 'deployments-are-bytes',
      comment: 'Synchronous functions on text, usable from any thread.',
      severity: 'error',
      from: { path: bytesOnly, pathNot: test },
      to: {
        path: '^src/',
        pathNot: [
          '^src/shared/(state/deployments|platform/json|platform/errors)/',
          '^src/shared/state/checkpoints/deployment-scanner\\.ts$',
          '^src/shared/state/journal/(replay/rules/|journal-batch\\.ts$)',
          '^src/shared/stacks/names\\.ts$',
        ],
      },
    },
    {
      name: 'deployments-do-no-io',
      severity: 'error',
      from: { path: bytesOnly, pathNot: test },
      to: { dependencyTypes: ['core'], pathNot: '^(node:)?crypto$' },
    },
    {
      name: 'protocol-stands-alone',
      severity: 'error',
      from: { path: '^src/api/platform/protocol/' },
      to: { path: '^src/', pathNot: '^src/api/platform/protocol/' },
    },
    {
      name: 'schemas-import-schemas-only',
      severity: 'error',
      from: { path: '\.schemas\.ts$' },
      to: { path: '^src/', pathNot: ['\.schemas\.ts$', '^src/api/platform/protocol/'] },
    },
    {
      name: 'routes-not-to-repositories',
      comment: 'Routes and procedures call services, which run the statements.',
      severity: 'error',
      from: { path: routes },
      to: { path: '-repository\\.ts$' },
    },
    {
      name: 'routes-get-services-only',
      comment: 'The contexts contain repositories; routes and procedures receive services.',
      severity: 'error',
      from: { path: '^src/api/.+\\.(routes|trpc)\\.ts$' },
      to: { path: ['api-context\\.ts$', '^src/shared/[^/]*context\\.ts$'] },
    },
    {
      name: 'states-are-read-in-slices',
      comment: 'Requests read whole states through platform/admission; exports are only sent on.',
      severity: 'error',
      from: {
        path: '^src/api/',
        pathNot: [
          '^src/api/(platform/admission/state-scans\\.ts$|create-api-context\\.ts$)',
          '^src/api/state/(download-slots(\\.test)?|state-service|state-view)\\.ts$',
        ],
      },
      to: { path: '^src/shared/(state/state-reader|search/scan-resources)\\.ts$' },
    },
    {
      name: 'repositories-hold-statements-only',
      severity: 'error',
      from: { path: '-repository\\.ts$' },
      to: { path: '(^src/shared/context|-(writer|reader|importer|renamer|restorer|compactor|closer|cipher|service))\\.ts$' },
    },
    onlyIn('fastify-in-api', '@?fastify', ['^src/api/']),
    onlyIn('trpc-in-procedures', '@trpc', ['^src/api/(access/procedures/|dashboard\\.routes\\.ts$|.+\\.trpc\\.ts$)', '^src/web/']),
    onlyIn('bullmq-in-jobs', 'bullmq', ['^src/shared/jobs/', '^src/workers/platform/(queue-workers|stored-errors)\\.ts$']),
    onlyIn('ioredis-in-redis', 'ioredis', ['^src/shared/platform/redis/']),
    onlyIn('commander-in-cli', 'commander', ['^src/cli/']),
    onlyIn('aws-in-blobs-and-kms', '@aws-sdk|@smithy', ['^src/shared/platform/(blobs|kms)/']),
    {
      name: 'kms-on-demand',
      comment: 'The SDKs cost startup time and memory: only processes with a key there load them.',
      severity: 'error',
      from: { path: '^src/', pathNot: test },
      to: { path: '^src/shared/platform/kms/(aws-kms|google-kms|vault-transit)\\.ts$', dynamic: false },
    },
    onlyIn('google-in-kms', 'google-auth-library', ['^src/shared/platform/kms/']),
    onlyIn('sql-in-db-and-repositories', 'slonik|@slonik|pg|node-pg-migrate', [
      '^src/shared/platform/db/',
      '-repository\\.ts$',
    ]),
    onlyIn('opentelemetry-in-tracing', '@opentelemetry', ['^src/shared/platform/tracing/']),
    {
      name: 'opentelemetry-loaded-on-demand',
      comment: 'A process that does not trace does not load the SDK.',
      severity: 'error',
      from: { path: '^src/', pathNot: test },
      to: { path: '^src/shared/platform/tracing/otlp-tracing\\.ts$', dynamic: false },
    },
    onlyIn('metrics-in-telemetry', 'prom-client', ['^src/shared/platform/telemetry/']),
    onlyIn('ipaddr-in-outgoing', 'ipaddr\\.js', ['^src/shared/platform/outgoing/']),
    onlyIn('pino-in-logger', 'pino', ['^src/shared/platform/logger/']),
    {
      name: 'e2e-is-black-box',
      comment: 'End-to-end tests use the server only through its command line and its port.',
      severity: 'error',
      from: { path: '^(e2e|testkit)/' },
      to: { path: '^(src|test)/' },
    },
    {
      name: 'product-needs-no-test',
      severity: 'error',
      from: { path: '^(src|bin)/', pathNot: test },
      to: { path: ['^(test|e2e|testkit|bench|scripts)/', test] },
    },
    {
      name: 'product-needs-no-dev-dependency',
      severity: 'error',
      from: { path: '^(src|bin)/', pathNot: ['^src/web/', test] },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'resolvable',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-orphans',
      severity: 'error',
      from: { orphan: true, path: '^src/', pathNot: [entry, '^src/web/public/', test] },
      to: {},
    },
    {
      name: 'no-barrels',
      comment: 'Import from the file that defines the symbol.',
      severity: 'error',
      from: { path: '^(src|test|e2e|testkit)/' },
      to: { path: '/index\\.ts$', pathNot: '^node_modules/' },
    },
  ],
  options: {
    // TypeScript 7 has no API for dependency-cruiser, so swc parses the files. `import type` counts as an import.
    parser: 'swc',
    tsPreCompilationDeps: true,
    doNotFollow: { path: '^node_modules/' },
    exclude: { path: '^(dist|data)/' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'types', 'default'] },
    detectJSDocImports: false,
  },
};
