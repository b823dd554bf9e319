export const driftTexts = {
  label: 'Stacks that have drifted',
  noDriftFound: 'No drift was found',
  refreshCompares: 'Every refresh compares a stack with the cloud, for example in a nightly pipeline:',
  state: 'State',
  drifted: 'Drifted',
  inSyncAgain: 'In sync again',
  differences: 'Differences',
  since: 'Since',
  lastFound: 'Last found',
  inSync: 'In sync',
} as const;
