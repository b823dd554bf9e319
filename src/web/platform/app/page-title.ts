import { useEffect } from 'react';

/** The title of the browser's tab and history. */
export function usePageTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} - Holdfast`;
  }, [title]);
}
