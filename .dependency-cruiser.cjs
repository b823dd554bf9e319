const { Visitor } = require('@swc/core/Visitor.js');

// The visitor through which dependency-cruiser reads TypeScript does not know `using` declarations.
const { visitStatement } = Visitor.prototype;
Visitor.prototype.visitStatement = function (statement) {
  if (statement.type !== 'UsingDeclaration') return visitStatement.call(this, statement);
  statement.decls = this.visitVariableDeclarators(statement.decls);
  return statement;
};

/**
 * The boundaries inside the code base. Whoever needs an exception changes the layout, not this file.
 *
 * @type {import('dependency-cruiser').IConfiguration}
 */
const nouns =
  '^src/shared/(checkpoints|deployments|documents|events|identity|journal|quotas|secrets|stacks|states|updates)/';
const bytesOnly = ['^src/shared/deployments/', '^src/shared/journal/replay/rules/'];
/** Where requests are taken: routes and plugins. */
const routes = '^src/api/(routes|plugins)/';
const entry = '^src/main\\.ts$';
const test = '\\.test\\.ts$';

/** A package may be imported from these places only. */
const onlyIn = (name, packages, places) => ({
  name,
  severity: 'error',
  from: { path: '^src/', pathNot: [...places, test] },
  to: { path: `^node_modules/(${packages})(/|$)` },
});

/**
 * What each folder of a noun may import of the others, lower ones first. An arrow that is not here would make a circle sooner or
 * later; what two nouns need belongs below both.
 */
const nounOrder = {
  stacks: [],
  // Bytes alone; of stacks their names.
  deployments: ['stacks/names\\.ts$'],
  secrets: ['stacks/'],
  documents: ['deployments/', 'secrets/'],
  updates: ['stacks/'],
  events: ['updates/'],
  checkpoints: ['deployments/', 'documents/', 'stacks/', 'updates/'],
  journal: ['checkpoints/', 'deployments/', 'documents/', 'stacks/', 'updates/'],
  states: ['checkpoints/', 'deployments/', 'documents/', 'journal/', 'stacks/', 'updates/'],
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
      comment: 'The roles are deployed apart; only the composition root joins them.',
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
      comment: 'src/server.ts joins the roles in one process; the command line only starts them.',
      severity: 'error',
      from: { path: '^src/(cli/|[^/]+\\.ts$)', pathNot: '^src/server\\.ts$' },
      to: { path: '^src/(api|workers)/', pathNot: '^src/(api|workers)/main\\.ts$' },
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
      comment: 'A job says which use case of a noun it runs; the use cases do not know whether they run in a job.',
      severity: 'error',
      from: { path: nouns },
      to: { path: '^src/shared/jobs/' },
    },
    ...nounRules,
    {
      name: 'deployments-are-bytes',
      comment: 'Rules about texts: any thread can use them, and none of them waits for anything.',
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
      comment: 'Routes and plugins call services; statements are reached through those.',
      severity: 'error',
      // answers.ts turns rows into the shapes of the wire: it imports their types.
      from: { path: [routes, '^src/api/[^/]+\\.ts$'], pathNot: '^src/api/routes/response-mappers\\.ts$' },
      to: { path: '-repository\\.ts$' },
    },
    {
      name: 'routes-get-services-only',
      comment: 'The contexts hold repositories; routes and plugins are given ApiServices, which names none.',
      severity: 'error',
      from: { path: [routes, '^src/api/api-services\\.ts$'] },
      to: { path: ['^src/api/(api-context|create-services)\\.ts$', '^src/shared/[^/]*context\\.ts$'] },
    },
    {
      name: 'repositories-hold-statements-only',
      severity: 'error',
      from: { path: '-repository\\.ts$' },
      to: { path: '(^src/shared/context|-(writer|reader|importer|renamer|restorer|compactor|closer|cipher|service))\\.ts$' },
    },
    onlyIn('fastify-in-api', '@?fastify', ['^src/api/']),
    onlyIn('bullmq-in-jobs', 'bullmq', ['^src/shared/jobs/', '^src/workers/queue-workers\\.ts$']),
    onlyIn('ioredis-in-redis', 'ioredis', ['^src/shared/platform/redis/']),
    onlyIn('commander-in-cli', 'commander', ['^src/cli/']),
    onlyIn('s3-in-blobs', '@aws-sdk|@smithy', ['^src/shared/platform/blobs/']),
    onlyIn('sql-in-db-and-repositories', 'slonik|@slonik|pg|node-pg-migrate', [
      '^src/shared/platform/db/',
      '-repository\\.ts$',
    ]),
    onlyIn('metrics-in-telemetry', 'prom-client', ['^src/shared/platform/telemetry/']),
    onlyIn('pino-in-logger', 'pino', ['^src/shared/platform/logger/']),
    {
      name: 'e2e-is-black-box',
      comment: 'End-to-end tests know the server by its command line and its port.',
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
      from: { path: '^(src|bin)/', pathNot: test },
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
      from: { orphan: true, path: '^src/', pathNot: [entry, test] },
      to: {},
    },
    {
      name: 'no-barrels',
      comment: 'Import the file that defines a thing.',
      severity: 'error',
      from: { path: '^(src|test|e2e|testkit)/' },
      to: { path: '/index\\.ts$', pathNot: '^node_modules/' },
    },
  ],
  options: {
    // TypeScript 7 has no API that dependency-cruiser could use; swc reads the files, and `import type` counts as
    // an import.
    parser: 'swc',
    tsPreCompilationDeps: true,
    doNotFollow: { path: '^node_modules/' },
    exclude: { path: '^(dist|data)/' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'types', 'default'] },
    detectJSDocImports: false,
  },
};
