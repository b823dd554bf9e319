import { type Choices, type DemoResource, ResourceList } from './resources.ts';

/** What a program is run with. */
export interface DemoStack {
  readonly organization: string;
  readonly project: string;
  readonly stack: string;
  /** How much of everything: 1 for development, more for production. */
  readonly scale: number;
  readonly region: string;
}

/** Which edition of a program runs: later ones have newer images, other sizes, and some more or fewer resources. */
export interface Edition {
  readonly number: number;
  readonly choices: Choices;
}

export interface DemoProgram {
  readonly project: string;
  readonly description: string;
  readonly runtime: 'nodejs' | 'python' | 'go' | 'yaml';
  readonly team: string;
  readonly build: (stack: DemoStack, edition: Edition) => DemoResource[];
  /** Outputs of the stack. A value that begins with `secret:` is encrypted. */
  readonly outputs: (stack: DemoStack, edition: Edition) => Record<string, unknown>;
}

const isProduction = ({ stack }: DemoStack): boolean => stack.startsWith('prod');
const tagsOf = (stack: DemoStack, team: string) => ({ environment: stack.stack, owner: team, 'managed-by': 'pulumi' });
const account = '481516234215';

/** A web service behind a load balancer, with a database. */
const storefront: DemoProgram = {
  project: 'storefront',
  description: 'The shop: web service, database and CDN',
  runtime: 'nodejs',
  team: 'checkout',
  build: (stack, { number, choices }) => {
    const list = new ResourceList();
    const tags = tagsOf(stack, 'checkout');
    const network = list.component('acme:network:Vpc', 'network');
    const vpc = list.add(
      'aws:ec2/vpc:Vpc',
      'main',
      { cidrBlock: '10.20.0.0/16', enableDnsHostnames: true, tags },
      { parent: network, computed: { arn: `arn:aws:ec2:${stack.region}:${account}:vpc/vpc-0a1b`, ownerId: account } },
    );
    const subnets: string[] = [];
    for (let zone = 0; zone < Math.min(3, stack.scale + 1); zone++) {
      for (const kind of ['public', 'private']) {
        const offset = kind === 'public' ? 0 : 100;
        const inputs = {
          vpcId: 'vpc-0a1b',
          cidrBlock: `10.20.${zone + offset}.0/24`,
          availabilityZone: `${stack.region}${'abc'[zone]}`,
        };
        subnets.push(
          list.add(
            'aws:ec2/subnet:Subnet',
            `${kind}-${zone}`,
            { ...inputs, tags },
            { parent: network, dependsOn: [vpc] },
          ),
        );
      }
    }
    const group = list.add(
      'aws:ec2/securityGroup:SecurityGroup',
      'web',
      {
        description: 'Web traffic',
        ingress: [{ protocol: 'tcp', fromPort: 443, toPort: 443, cidrBlocks: ['0.0.0.0/0'] }],
        tags,
      },
      { dependsOn: [vpc] },
    );
    const service = list.component('acme:service:WebService', 'shop');
    const balancer = list.add(
      'aws:lb/loadBalancer:LoadBalancer',
      'shop',
      { loadBalancerType: 'application', enableDeletionProtection: isProduction(stack), tags },
      {
        parent: service,
        dependsOn: [group, ...subnets.filter((name) => name.startsWith('public'))],
        computed: { dnsName: `shop-${stack.stack}.${stack.region}.elb.amazonaws.com` },
      },
    );
    list.add(
      'aws:lb/listener:Listener',
      'https',
      { port: 443, protocol: 'HTTPS', sslPolicy: 'ELBSecurityPolicy-TLS13-1-2-2021-06' },
      { parent: service, dependsOn: [balancer] },
    );
    const cluster = list.add(
      'aws:ecs/cluster:Cluster',
      'shop',
      { settings: [{ name: 'containerInsights', value: 'enabled' }], tags },
      { parent: service },
    );
    for (const part of ['web', 'cart', 'search', 'checkout', 'images'].slice(0, 1 + stack.scale)) {
      const image = `${account}.dkr.ecr.${stack.region}.amazonaws.com/${part}:1.${40 + number}.${part.length % 4}`;
      const definition = list.add(
        'aws:ecs/taskDefinition:TaskDefinition',
        part,
        {
          family: part,
          cpu: String(256 * stack.scale),
          memory: String(512 * stack.scale),
          containerDefinitions: JSON.stringify([{ name: part, image, portMappings: [{ containerPort: 8080 }] }]),
        },
        { parent: service, computed: { revision: 12 + number } },
      );
      list.add(
        'aws:ecs/service:Service',
        part,
        { desiredCount: stack.scale * choices.between(1, 3), launchType: 'FARGATE' },
        { parent: service, dependsOn: [cluster, definition] },
      );
      list.add(
        'aws:cloudwatch/logGroup:LogGroup',
        part,
        { retentionInDays: isProduction(stack) ? 90 : 7, tags },
        { parent: service },
      );
    }
    const password = list.add('random:index/randomPassword:RandomPassword', 'database', { length: 32, special: false });
    const database = list.add(
      'aws:rds/instance:Instance',
      'orders',
      {
        engine: 'postgres',
        engineVersion: number > 6 ? '17.4' : '16.6',
        instanceClass: `db.r6g.${isProduction(stack) ? '2xlarge' : 'large'}`,
        allocatedStorage: 50 * stack.scale,
        multiAz: isProduction(stack),
        tags,
      },
      {
        protect: isProduction(stack),
        dependsOn: [password, ...subnets.filter((name) => name.startsWith('private'))],
        computed: { endpoint: `orders.${stack.stack}.${stack.region}.rds.amazonaws.com:5432`, status: 'available' },
      },
    );
    const bucket = list.add(
      'aws:s3/bucketV2:BucketV2',
      'assets',
      { bucket: `acme-shop-${stack.stack}-assets`, tags },
      { protect: isProduction(stack) },
    );
    const cdn = list.add(
      'aws:cloudfront/distribution:Distribution',
      'cdn',
      { enabled: true, priceClass: 'PriceClass_100', httpVersion: 'http2and3' },
      { dependsOn: [bucket, balancer], computed: { domainName: `d${choices.hex(12)}.cloudfront.net` } },
    );
    list.add(
      'aws:route53/record:Record',
      'shop',
      { type: 'A', name: stack.stack === 'prod' ? 'shop.acme.example' : `shop-${stack.stack}.acme.example` },
      { dependsOn: [cdn] },
    );
    if (number % 3 === 1)
      list.add(
        'aws:cloudwatch/metricAlarm:MetricAlarm',
        'slow-checkout',
        { metricName: 'TargetResponseTime', threshold: 0.8, evaluationPeriods: 3 },
        { dependsOn: [balancer] },
      );
    if (number > 4)
      list.add(
        'aws:wafv2/webAcl:WebAcl',
        'edge',
        { scope: 'CLOUDFRONT', defaultAction: { allow: {} } },
        { dependsOn: [cdn, database] },
      );
    return list.resources;
  },
  outputs: (stack, { number }) => ({
    url: stack.stack === 'prod' ? 'https://shop.acme.example' : `https://shop-${stack.stack}.acme.example`,
    vpcId: 'vpc-0a1b',
    databaseEndpoint: `orders.${stack.stack}.${stack.region}.rds.amazonaws.com:5432`,
    databasePassword: `secret:${stack.project}-${stack.stack}`,
    release: `1.${40 + number}.0`,
  }),
};

/** A Kubernetes cluster with what every team needs on it. */
const cluster: DemoProgram = {
  project: 'cluster',
  description: 'Kubernetes with ingress, monitoring and certificates',
  runtime: 'go',
  team: 'platform',
  build: (stack, { number, choices }) => {
    const list = new ResourceList();
    const tags = tagsOf(stack, 'platform');
    const role = list.add('aws:iam/role:Role', 'nodes', { assumeRolePolicy: '{"Version":"2012-10-17"}', tags });
    const eks = list.add(
      'aws:eks/cluster:Cluster',
      'main',
      { version: `1.${31 + Math.floor(number / 3)}`, roleArn: `arn:aws:iam::${account}:role/eks`, tags },
      {
        protect: isProduction(stack),
        dependsOn: [role],
        computed: { endpoint: `https://${choices.hex(32)}.gr7.${stack.region}.eks.amazonaws.com`, status: 'ACTIVE' },
      },
    );
    for (const pool of ['general', 'memory', 'gpu'].slice(0, stack.scale)) {
      list.add(
        'aws:eks/nodeGroup:NodeGroup',
        pool,
        {
          instanceTypes: [pool === 'gpu' ? 'g6.xlarge' : 'm7g.xlarge'],
          scalingConfig: { minSize: 1, desiredSize: stack.scale + (number % 3), maxSize: 12 },
          tags,
        },
        { dependsOn: [eks] },
      );
    }
    for (const name of ['ingress', 'monitoring', 'certificates', 'secrets', 'autoscaler', 'backup']) {
      const group = list.component('acme:kubernetes:Addon', name);
      const space = list.add(
        'kubernetes:core/v1:Namespace',
        name,
        { metadata: { name } },
        { parent: group, dependsOn: [eks] },
      );
      list.add(
        'kubernetes:helm.sh/v3:Release',
        name,
        {
          chart: name,
          version: `${2 + (name.length % 4)}.${number}.0`,
          namespace: name,
          values: { replicas: stack.scale },
        },
        { parent: group, dependsOn: [space] },
      );
      list.add(
        'kubernetes:core/v1:ConfigMap',
        `${name}-settings`,
        { metadata: { namespace: name }, data: { level: number % 2 ? 'info' : 'warn' } },
        { parent: group, dependsOn: [space] },
      );
      list.add(
        'kubernetes:policy/v1:PodDisruptionBudget',
        name,
        { spec: { minAvailable: 1 } },
        { parent: group, dependsOn: [space] },
      );
    }
    for (let team = 0; team < stack.scale * 5 + (number % 4); team++)
      list.add(
        'kubernetes:rbac.authorization.k8s.io/v1:RoleBinding',
        `team-${team}`,
        { roleRef: { kind: 'ClusterRole', name: 'edit' }, subjects: [{ kind: 'Group', name: `team-${team}` }] },
        { dependsOn: [eks] },
      );
    return list.resources;
  },
  outputs: (stack, { number }) => ({
    clusterName: `${stack.organization}-${stack.stack}`,
    version: `1.${31 + Math.floor(number / 3)}`,
    kubeconfig: `secret:apiVersion: v1, cluster ${stack.stack}`,
  }),
};

/** Tables, streams and jobs. */
const analytics: DemoProgram = {
  project: 'analytics',
  description: 'Event streams, warehouse and nightly jobs',
  runtime: 'python',
  team: 'data',
  build: (stack, { number, choices }) => {
    const list = new ResourceList();
    const labels = { team: 'data', environment: stack.stack };
    const set = list.add(
      'gcp:bigquery/dataset:Dataset',
      'events',
      { datasetId: 'events', location: 'EU', labels },
      { protect: isProduction(stack) },
    );
    for (const table of ['orders', 'sessions', 'payments', 'returns', 'stock', 'prices', 'reviews', 'support'].slice(
      0,
      3 + stack.scale + (number % 2),
    )) {
      list.add(
        'gcp:bigquery/table:Table',
        table,
        { datasetId: 'events', tableId: table, timePartitioning: { type: 'DAY' }, labels },
        { dependsOn: [set], protect: isProduction(stack), computed: { numRows: choices.between(10_000, 9_000_000) } },
      );
      const topic = list.add('gcp:pubsub/topic:Topic', table, { messageRetentionDuration: '86400s', labels });
      list.add(
        'gcp:pubsub/subscription:Subscription',
        `${table}-to-warehouse`,
        { ackDeadlineSeconds: 30 + number, bigqueryConfig: { table: `events.${table}` } },
        { dependsOn: [topic] },
      );
    }
    const account = list.add('gcp:serviceaccount/account:Account', 'jobs', {
      accountId: 'jobs',
      displayName: 'Nightly jobs',
    });
    for (const job of ['compact', 'export', 'forecast'])
      list.add(
        'gcp:cloudrunv2/job:Job',
        job,
        {
          location: 'europe-west1',
          template: { image: `europe-docker.pkg.dev/acme/jobs/${job}:${20 + number}` },
          labels,
        },
        { dependsOn: [account, set] },
      );
    return list.resources;
  },
  outputs: () => ({ dataset: 'events', console: 'https://console.cloud.google.com/bigquery?project=acme' }),
};

/** A static site. */
const site: DemoProgram = {
  project: 'website',
  description: 'The public web site',
  runtime: 'yaml',
  team: 'marketing',
  build: (stack, { number }) => {
    const list = new ResourceList();
    const bucket = list.add('aws:s3/bucketV2:BucketV2', 'site', { bucket: `acme-site-${stack.stack}` });
    for (const page of ['index.html', 'pricing.html', 'docs.html', 'blog.html', 'about.html', 'jobs.html'].slice(
      0,
      3 + (number % 4),
    ))
      list.add(
        'aws:s3/bucketObjectv2:BucketObjectv2',
        page,
        { key: page, contentType: 'text/html', etag: `${page}-${number}` },
        { dependsOn: [bucket] },
      );
    list.add(
      'cloudflare:index/dnsRecord:DnsRecord',
      'www',
      {
        type: 'CNAME',
        name: 'www',
        content: `acme-site-${stack.stack}.s3-website.${stack.region}.amazonaws.com`,
        proxied: true,
      },
      { dependsOn: [bucket] },
    );
    return list.resources;
  },
  outputs: (stack) => ({ url: `https://${stack.stack === 'prod' ? 'www' : stack.stack}.acme.example` }),
};

/** One small service of many. */
const service: DemoProgram = {
  project: 'service',
  description: 'A service on the shared cluster',
  runtime: 'nodejs',
  team: 'product',
  build: (stack, { number, choices }) => {
    const list = new ResourceList();
    const name = stack.project;
    const space = list.add('kubernetes:core/v1:Namespace', name, { metadata: { name } });
    const settings = list.add(
      'kubernetes:core/v1:ConfigMap',
      'settings',
      {
        metadata: { namespace: name },
        data: { LOG_LEVEL: number % 5 === 0 ? 'debug' : 'info', FEATURES: `f${number}` },
      },
      { dependsOn: [space] },
    );
    const deployment = list.add(
      'kubernetes:apps/v1:Deployment',
      name,
      {
        metadata: { namespace: name },
        spec: {
          replicas: stack.scale + choices.between(0, 2),
          template: {
            spec: { containers: [{ name, image: `registry.acme.example/${name}:${number}.${choices.between(0, 9)}` }] },
          },
        },
      },
      { dependsOn: [settings] },
    );
    list.add(
      'kubernetes:core/v1:Service',
      name,
      { spec: { type: 'ClusterIP', ports: [{ port: 80, targetPort: 8080 }] } },
      { dependsOn: [deployment] },
    );
    list.add(
      'kubernetes:autoscaling/v2:HorizontalPodAutoscaler',
      name,
      { spec: { minReplicas: stack.scale, maxReplicas: 10 } },
      { dependsOn: [deployment] },
    );
    if (number % 2 === 0)
      list.add(
        'kubernetes:batch/v1:CronJob',
        'cleanup',
        { spec: { schedule: '0 3 * * *' } },
        { dependsOn: [settings] },
      );
    return list.resources;
  },
  outputs: (stack) => ({ address: `http://${stack.project}.${stack.project}.svc.cluster.local` }),
};

export const programs = { storefront, cluster, analytics, site, service } as const;
