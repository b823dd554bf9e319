import { ResourceList } from '../resources.ts';
import { account, type DemoProgram, type DemoStack, isProduction, tagsOf } from './program.ts';

/** A web service behind a load balancer, with a database. */
export const storefront: DemoProgram = {
  project: 'storefront',
  description: 'The shop: web service, database and CDN',
  runtime: 'nodejs',
  team: 'checkout',
  build: (stack, { number, choices }) => {
    const list = new ResourceList();
    const tags = tagsOf(stack, 'checkout');
    list.reads(`${stack.organization}/cluster/${stack.stack.startsWith('preview') ? 'dev' : stack.stack}`);
    list.reads(`${stack.organization}/analytics/${isProduction(stack) ? 'prod' : 'dev'}`);
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
    readme: readmeOf(stack),
  }),
};

function readmeOf(stack: DemoStack): string {
  return `# Storefront, ${stack.stack}

The shop of ${stack.organization} in \`${stack.region}\`: web tasks behind a load balancer, the orders database and the CDN.

| Part | Owner | On call |
| --- | --- | --- |
| Web, cart, search | team checkout | [rota](https://oncall.example/checkout) |
| Orders database | team data | [rota](https://oncall.example/data) |

**Before a release**, look at the preview of the same commit. The database is protected: an update that would replace it stops
and asks for an approval.
`;
}
