"""iGSM: word problems over a graph of quantities, of any number of operations, with solutions that behaviours can be
injected into."""
