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
const nouns =
  '^src/shared/(audit|checkpoints|deployments|documents|drift|events|figures|identity|journal|live|policies|quotas|resources|secrets|stacks|states|updates|webhooks)/';
const bytesOnly = ['^src/shared/deployments/', '^src/shared/journal/replay/rules/'];
/** Code that handles requests: routes, plugins and procedures. */
const routes = '^src/api/(routes|plugins|trpc)/';
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
 * What each noun's directory may import from the others, lower ones first. Any other import would sooner or later
 * create a cycle. What two nouns share belongs below both.
 */
const nounOrder = {
  audit: [],
  live: [],
  stacks: [],
  // Works on bytes only; from stacks it needs only the names.
  deployments: ['stacks/names\\.ts$'],
  secrets: ['stacks/'],
  documents: ['deployments/', 'secrets/'],
  policies: ['documents/'],
  webhooks: ['secrets/', 'stacks/'],
  updates: ['audit/', 'stacks/'],
  events: ['documents/', 'stacks/', 'updates/'],
  drift: ['events/', 'stacks/', 'updates/', 'webhooks/'],
  checkpoints: ['deployments/', 'documents/', 'stacks/', 'updates/'],
  resources: ['checkpoints/', 'deployments/', 'documents/', 'stacks/', 'updates/'],
  figures: ['audit/', 'checkpoints/', 'deployments/', 'events/', 'journal/', 'stacks/', 'updates/'],
  journal: ['audit/', 'checkpoints/', 'deployments/', 'documents/', 'events/', 'stacks/', 'updates/'],
  states: ['audit/', 'checkpoints/', 'deployments/', 'documents/', 'events/', 'journal/', 'policies/', 'stacks/', 'updates/'],
};
const nounRules = Object.entries(nounOrder).map(([noun, lower]) => ({
  name: `${noun}-imports-lower-nouns-only`,
  severity: 'error',
  from: { path: `^src/shared/${noun}/`, pathNot: test },
  to: { path: nouns, pathNot: [`${noun}/`, ...lower].map((path) => `^src/shared/${path}`) },
}));

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
      to: { path: '^src/(?!web/)', pathNot: '^src/api/trpc/router\\.ts$' },
    },
    {
      name: 'web-parts-know-no-page',
      comment: 'What the web UI is built of; pages give it what it shows.',
      severity: 'error',
      from: { path: '^src/web/ui/' },
      to: { path: '^src/web/(?!ui/)' },
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
    {
      name: 'platform-knows-no-noun',
      severity: 'error',
      from: { path: '^src/shared/platform/' },
      to: { path: [nouns, '^src/shared/(jobs/|protocol/|[^/]+\\.ts$)'] },
    },
    {
      name: 'nouns-not-to-jobs',
      comment: 'Jobs call the use cases of nouns; the use cases do not depend on running in a job.',
      severity: 'error',
      from: { path: nouns },
      to: { path: '^src/shared/jobs/' },
    },
    ...nounRules,
    {
      name: 'deployments-are-bytes',
      comment: 'Synchronous functions on text, usable from any thread.',
      severity: 'error',
      from: { path: bytesOnly, pathNot: test },
      to: {
        path: '^src/',
        pathNot: [
          '^src/shared/(deployments|platform/json|platform/errors)/',
          '^src/shared/journal/(replay/rules/|journal-batch\\.ts$)',
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
      from: { path: '^src/shared/protocol/' },
      to: { path: '^src/', pathNot: '^src/shared/protocol/' },
    },
    {
      name: 'routes-not-to-repositories',
      comment: 'Routes and plugins call services, which run the statements.',
      severity: 'error',
      // response-mappers.ts converts rows to response bodies and imports the row types.
      from: { path: [routes, '^src/api/[^/]+\\.ts$'], pathNot: '^src/api/routes/response-mappers\\.ts$' },
      to: { path: '-repository\\.ts$' },
    },
    {
      name: 'routes-get-services-only',
      comment: 'The contexts contain repositories; routes and plugins receive ApiServices, which has none.',
      severity: 'error',
      from: { path: [routes, '^src/api/api-services\\.ts$'] },
      to: { path: ['^src/api/(api-context|create-services)\\.ts$', '^src/shared/[^/]*context\\.ts$'] },
    },
    {
      name: 'states-are-read-in-turns',
      comment: 'Requests read whole states through api/scans; exports are only sent on.',
      severity: 'error',
      from: {
        path: '^src/api/',
        pathNot: [
          '^src/api/(scans/|api-context\\.ts$)',
          '^src/api/(stacks/state-service|routes/state\\.routes|resources/state-view)\\.ts$',
        ],
      },
      to: { path: '^src/shared/(states/state-reader|resources/scan-resources)\\.ts$' },
    },
    {
      name: 'repositories-hold-statements-only',
      severity: 'error',
      from: { path: '-repository\\.ts$' },
      to: { path: '(^src/shared/context|-(writer|reader|importer|renamer|restorer|compactor|closer|cipher|service))\\.ts$' },
    },
    onlyIn('fastify-in-api', '@?fastify', ['^src/api/']),
    onlyIn('trpc-in-procedures', '@trpc', ['^src/api/trpc/', '^src/web/']),
    onlyIn('bullmq-in-jobs', 'bullmq', ['^src/shared/jobs/', '^src/workers/queue-workers\\.ts$']),
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
