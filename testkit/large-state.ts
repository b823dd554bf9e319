/** The component itself, and its children. */
const perComponent = 10;

/**
 * The resources of a large stack, about `count`: a network that all use, and components of one type, each with a database on which its
 * other resources depend. The first component also depends on the second one.
 */
export function largeState(stack: { readonly project: string; readonly stack: string }, count: number): object[] {
  const prefix = `urn:pulumi:${stack.stack}::${stack.project}`;
  const rootUrn = `${prefix}::pulumi:pulumi:Stack::${stack.project}-${stack.stack}`;
  const network = `${prefix}::aws:ec2/vpc:Vpc::network`;
  const database = (at: number) => `${prefix}::acme:shop:Service$aws:rds/instance:Instance::database-${at}`;
  const service = (at: number): object[] => {
    const urn = `${prefix}::acme:shop:Service::service-${at}`;
    const dependencies = [database(at), ...(at === 0 ? [database(1)] : [])];
    const bucketType = 'aws:s3/bucket:Bucket';
    return [
      { urn, type: 'acme:shop:Service', custom: false, parent: rootUrn },
      {
        ...{ urn: database(at), type: 'aws:rds/instance:Instance', custom: true, id: `d${at}`, parent: urn },
        dependencies: [network],
      },
      ...Array.from({ length: perComponent - 2 }, (_, each) => ({
        ...{ urn: `${prefix}::acme:shop:Service$${bucketType}::bucket-${at}-${each}`, type: bucketType, custom: true },
        ...{ id: `b${at}-${each}`, parent: urn, dependencies, inputs: {}, outputs: {} },
      })),
    ];
  };
  return [
    { urn: rootUrn, type: 'pulumi:pulumi:Stack', custom: false },
    { urn: network, type: 'aws:ec2/vpc:Vpc', custom: true, id: 'n', parent: rootUrn },
    ...Array.from({ length: Math.floor((count - 2) / perComponent) }, (_, at) => service(at)).flat(),
  ];
}
