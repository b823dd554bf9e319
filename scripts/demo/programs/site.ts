import { ResourceList } from '../resources.ts';
import type { DemoProgram } from './program.ts';

/** A static site. */
export const site: DemoProgram = {
  project: 'website',
  description: 'The public web site',
  runtime: 'yaml',
  team: 'marketing',
  build: (stack, { number }) => {
    const list = new ResourceList();
    list.reads(`${stack.organization}/storefront/${stack.stack}`);
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
