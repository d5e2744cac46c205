export default function Page() {
  return 'shop'
}
